"""Parts that the packages of architecture search share: markers, names, the framework."""

from nni.nas.utils.framework import get_default_framework, set_default_framework, shortcut
from nni.nas.utils.importable_names import get_importable_name, import_
from nni.nas.utils.markers import basic_unit, is_basic_unit, is_model_wrapped

__all__ = [
    "basic_unit",
    "get_default_framework",
    "get_importable_name",
    "import_",
    "is_basic_unit",
    "is_model_wrapped",
    "set_default_framework",
    "shortcut",
]
