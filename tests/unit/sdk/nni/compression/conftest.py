"""Set-up of all tests of compression."""

import torch

# Otherwise torch gives many a warning once in a process: which test gets it depends on the others.
torch.set_warn_always(True)
