"""Parts that the packages of architecture search share: markers, names, the framework."""

from nni.common.framework import get_default_framework, set_default_framework, shortcut
from nni.nas.utils.checkpoint_files import (
    JsonSerializer,
    Serializer,
    TorchSerializer,
    get_default_serializer,
    set_default_serializer,
)
from nni.nas.utils.importable_names import get_importable_name, import_
from nni.nas.utils.markers import basic_unit, is_basic_unit, is_model_wrapped
from nni.nas.utils.original_names import original_names, original_state_dict_hooks
from nni.nas.utils.sample_generations import convert_sample
from nni.nas.utils.tracing_spellings import serialize, serialize_cls

__all__ = [
    "JsonSerializer",
    "Serializer",
    "TorchSerializer",
    "basic_unit",
    "convert_sample",
    "get_default_framework",
    "get_default_serializer",
    "get_importable_name",
    "import_",
    "is_basic_unit",
    "is_model_wrapped",
    "original_names",
    "original_state_dict_hooks",
    "serialize",
    "serialize_cls",
    "set_default_framework",
    "set_default_serializer",
    "shortcut",
]
