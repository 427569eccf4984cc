"""What ReducedTimestep reports and rewrites, and what looks like it and stays."""

from __future__ import annotations

from patcher.rule import Example, NearMiss

_NET = """class Config:
    num_train_timesteps = 200


class Scheduler:
    config = Config()
    timesteps = torch.tensor([1000.0, 500.0, 250.0, 125.0])
    sigmas = torch.tensor([1.0, 0.5, 0.25, 0.125])

    def step(self, noise, t, sample):
        return sample - noise * 0.25

    def add_noise(self, sample, noise, timesteps):
        return sample + noise


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(8, 4)

    def forward(self, x, timestep):
        scale = torch.exp(-torch.arange(4) / 2.0)
        angles = timestep.float()[:, None] * scale
        embedded = torch.cat([angles.sin(), angles.cos()], -1)
        return x + self.lin(embedded.to(x.dtype))


"""
#: Timesteps of these runs lose nothing in bfloat16: with others, the outputs are meant to be different.
_RUN = """
def make():
    torch.manual_seed(0)
    net, scheduler = Net().to(torch.bfloat16), Scheduler()
    return lambda *args: script(net, scheduler, *args)

calls = [(torch.ones(2, 4, dtype=torch.bfloat16),), (torch.zeros(3, 4, dtype=torch.bfloat16),)]
"""

INVALID: tuple[Example, ...] = (
    Example(
        title="cast where they are returned",
        before=_NET
        + """def noisy_and_timesteps(scheduler, latents, noise, dtype):
    num_timesteps = scheduler.config.num_train_timesteps * 5
    sigmas = torch.full((latents.shape[0],), 0.5)
    timesteps = sigmas * num_timesteps
    sigmas = sigmas.view(-1, 1)
    noisy = (1.0 - sigmas) * latents + sigmas * noise
    return noisy.to(dtype), timesteps.to(dtype), sigmas  # as the model has them


def script(net, scheduler, x):
    noisy, timesteps, sigmas = noisy_and_timesteps(scheduler, x, torch.ones_like(x), torch.bfloat16)
    return net(noisy, timesteps)
""",
        after=_NET
        + """def noisy_and_timesteps(scheduler, latents, noise, dtype):
    num_timesteps = scheduler.config.num_train_timesteps * 5
    sigmas = torch.full((latents.shape[0],), 0.5)
    timesteps = sigmas * num_timesteps
    sigmas = sigmas.view(-1, 1)
    noisy = (1.0 - sigmas) * latents + sigmas * noise
    return noisy.to(dtype), timesteps.to(torch.float32), sigmas  # as the model has them


def script(net, scheduler, x):
    noisy, timesteps, sigmas = noisy_and_timesteps(scheduler, x, torch.ones_like(x), torch.bfloat16)
    return net(noisy, timesteps)
""",
        run=_RUN,
        gain=False,
        unsafe=True,
    ),
    Example(
        title="in a sampling loop, to the dtype of the latents",
        before=_NET
        + """def script(net, scheduler, x):
    for i, t in enumerate(scheduler.timesteps):
        timestep = t.expand(x.shape[0]).to(x.dtype)
        noise = net(x, timestep=timestep)
        x = scheduler.step(noise, t, x)
    return x
""",
        after=_NET
        + """def script(net, scheduler, x):
    for i, t in enumerate(scheduler.timesteps):
        timestep = t.expand(x.shape[0]).to(torch.float32)
        noise = net(x, timestep=timestep)
        x = scheduler.step(noise, t, x)
    return x
""",
        run=_RUN,
        gain=False,
        unsafe=True,
    ),
    Example(
        title="random integers, to the dtype of the weights",
        before=_NET
        + """def script(net, scheduler, x, mixed_precision="bf16"):
    weight_dtype = torch.float32
    if mixed_precision == "fp16":
        weight_dtype = torch.float16
    elif mixed_precision == "bf16":
        weight_dtype = torch.bfloat16
    timesteps = torch.randint(0, scheduler.config.num_train_timesteps, (x.shape[0],))
    noisy = scheduler.add_noise(x, torch.ones_like(x), timesteps)
    return net(noisy, timesteps.to(x.device, dtype=weight_dtype))
""",
        after=_NET
        + """def script(net, scheduler, x, mixed_precision="bf16"):
    weight_dtype = torch.float32
    if mixed_precision == "fp16":
        weight_dtype = torch.float16
    elif mixed_precision == "bf16":
        weight_dtype = torch.bfloat16
    timesteps = torch.randint(0, scheduler.config.num_train_timesteps, (x.shape[0],))
    noisy = scheduler.add_noise(x, torch.ones_like(x), timesteps)
    return net(noisy, timesteps.to(x.device, dtype=torch.float32))
""",
        run=_RUN,
        gain=False,
        unsafe=True,
    ),
    Example(
        title="by a method, and scaled before",
        before=_NET
        + """def get_timesteps_sigmas(scheduler):
    return scheduler.timesteps, scheduler.sigmas


def script(net, scheduler, x):
    timesteps, sigmas = get_timesteps_sigmas(scheduler)
    timesteps = timesteps / 1000
    timesteps = timesteps.bfloat16()
    for t, sigma in zip(timesteps, sigmas):
        t_expanded = t.expand(x.shape[0])
        x = x - sigma.to(x.dtype) * net(x, t_expanded)
    return x
""",
        after=_NET
        + """def get_timesteps_sigmas(scheduler):
    return scheduler.timesteps, scheduler.sigmas


def script(net, scheduler, x):
    timesteps, sigmas = get_timesteps_sigmas(scheduler)
    timesteps = timesteps / 1000
    timesteps = timesteps.float()
    for t, sigma in zip(timesteps, sigmas):
        t_expanded = t.expand(x.shape[0])
        x = x - sigma.to(x.dtype) * net(x, t_expanded)
    return x
""",
        run=_RUN,
        gain=False,
        unsafe=True,
    ),
    Example(
        title="in the model, in front of its embedding",
        before=_NET
        + """def time_embedding(t, width):
    angles = t.float()[:, None] * torch.exp(-torch.arange(width // 2) / 2.0)
    return torch.cat([angles.sin(), angles.cos()], -1)


class Transformer(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(8, 4, dtype=torch.bfloat16)

    def forward(self, hidden, timestep):
        timestep = timestep.to(hidden.dtype) * 1000
        embedded = time_embedding(timestep, 8)
        return hidden + self.lin(embedded.to(hidden.dtype))


def script(net, scheduler, x):
    torch.manual_seed(0)
    return Transformer()(x, torch.full((x.shape[0],), 0.5))
""",
        after=_NET
        + """def time_embedding(t, width):
    angles = t.float()[:, None] * torch.exp(-torch.arange(width // 2) / 2.0)
    return torch.cat([angles.sin(), angles.cos()], -1)


class Transformer(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(8, 4, dtype=torch.bfloat16)

    def forward(self, hidden, timestep):
        timestep = timestep.to(torch.float32) * 1000
        embedded = time_embedding(timestep, 8)
        return hidden + self.lin(embedded.to(hidden.dtype))


def script(net, scheduler, x):
    torch.manual_seed(0)
    return Transformer()(x, torch.full((x.shape[0],), 0.5))
""",
        run=_RUN,
        gain=False,
        unsafe=True,
    ),
    Example(
        title="made in a reduced dtype",
        before=_NET
        + """def script(net, scheduler, x):
    for t in scheduler.timesteps:
        t_vec = torch.full((x.shape[0],), t, dtype=x.dtype)
        x = x - 0.25 * net(x, timestep=t_vec)
    return x
""",
        after=_NET
        + """def script(net, scheduler, x):
    for t in scheduler.timesteps:
        t_vec = torch.full((x.shape[0],), t, dtype=torch.float32)
        x = x - 0.25 * net(x, timestep=t_vec)
    return x
""",
        run=_RUN,
        gain=False,
        unsafe=True,
    ),
    Example(
        title="from a parameter, computed with before the model gets it",
        before=_NET
        + """def denoise(net, latents, timesteps, network_dtype):
    raw = timesteps.to(device=latents.device, dtype=network_dtype)
    timestep = (1.0 - raw / 1000.0).clamp(0.0, 1.0).reshape(-1)
    return net(latents, timestep=timestep)


def script(net, scheduler, x):
    return denoise(net, x, scheduler.timesteps[: x.shape[0]], x.dtype)
""",
        after=_NET
        + """def denoise(net, latents, timesteps, network_dtype):
    raw = timesteps.to(device=latents.device, dtype=torch.float32)
    timestep = (1.0 - raw / 1000.0).clamp(0.0, 1.0).reshape(-1)
    return net(latents, timestep=timestep)


def script(net, scheduler, x):
    return denoise(net, x, scheduler.timesteps[: x.shape[0]], x.dtype)
""",
        run=_RUN,
        gain=False,
        unsafe=True,
    ),
)

VALID: tuple[NearMiss, ...] = (
    NearMiss(
        title="cast below the embedding",
        source=_NET
        + """class Embedder(nn.Module):
    def forward(self, t):
        return torch.sin(t.float())


def script(net, scheduler, x, time_proj: Embedder):
    for timestep in scheduler.timesteps:
        timestep_embedded = time_proj(timestep)
        emb = timestep_embedded.to(dtype=x.dtype)
        x = net(x, emb) + get_timestep_embedding(timestep, 8).to(x.dtype)
    return x
""",
    ),
    NearMiss(
        title="to a device, to float32, to integers",
        source=_NET
        + """def script(net, scheduler, x, device):
    timesteps = scheduler.timesteps.to(device)
    weight_dtype = torch.float32
    x = net(x, timesteps.to(weight_dtype))
    x = net(x, timestep=timesteps.to(device, dtype=torch.float32))
    x = net(x, timestep=timesteps.to(torch.int64))
    x = net(x, timestep=timesteps.float())
    return net(x, timestep=timesteps.to(x.device))
""",
    ),
    NearMiss(
        title="sigmas that mix noise",
        source=_NET
        + """def get_sigmas(scheduler, timesteps, dtype=torch.float32):
    sigmas = scheduler.sigmas.to(device=timesteps.device, dtype=dtype)
    return sigmas[: timesteps.shape[0]].flatten()


def script(net, scheduler, x, noise, weight_dtype):
    timesteps = scheduler.timesteps
    sigmas = get_sigmas(scheduler, timesteps, dtype=x.dtype)
    noisy = (1.0 - sigmas) * x + sigmas * noise
    noisy = noisy.to(weight_dtype)
    return net(noisy, timesteps)
""",
    ),
    NearMiss(
        title="for the scheduler alone",
        source=_NET
        + """def script(net, scheduler, x, noise):
    for t in scheduler.timesteps:
        x = scheduler.step(net(x, t), t.to(x.dtype), x)
    return scheduler.add_noise(x, noise, scheduler.timesteps.to(x.dtype))
""",
    ),
    NearMiss(
        title="other things with such names",
        source=_NET
        + """class Attention(nn.Module):
    def forward(self, q, k, t):
        t = t.to(q.dtype)
        return q @ k.t().half() * t


def script(net, scheduler, x, time_weights, t, sigma):
    timestep_weights = time_weights.to(x.dtype)
    x = x * timestep_weights * sigma.to(x.dtype)
    num_timesteps = torch.tensor(scheduler.config.num_train_timesteps, dtype=x.dtype)
    loss_per_timestep = (x / num_timesteps).half()
    return loss_per_timestep, t.bfloat16() + 1
""",
    ),
    NearMiss(
        title="how many there are, and what is made of them",
        source=_NET
        + """def script(net, scheduler, x):
    num_timesteps = torch.tensor(scheduler.config.num_train_timesteps, dtype=x.dtype)
    timestep_weights = (scheduler.timesteps / num_timesteps).sum().to(x.dtype)
    return net(x * timestep_weights, scheduler.timesteps)
""",
    ),
)
