
from show import *
