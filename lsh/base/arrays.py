"""The type of an array of numpy of any shape and type, for annotations."""

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
