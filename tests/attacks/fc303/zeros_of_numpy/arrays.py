
from numpy import *
