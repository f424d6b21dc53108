"""Imports the user's app, `MODULE:APP`."""

from __future__ import annotations

import importlib
import sys
import traceback
from pathlib import Path

from foliot.errors import ApplicationError
from foliot.sdk.app import App

IMPORTERS = ("<frozen importlib", str(Path(importlib.__file__).parent), __file__)


def load_app(reference: str) -> App:
    """Imports the app that `module:attribute` names. The working directory is on the path."""
    module_name, _, attribute = reference.partition(":")
    attribute = attribute or "app"
    if not module_name or module_name.startswith("."):
        raise ApplicationError(f"{reference!r}: must be MODULE:APP, such as shop.tasks:app")
    if (here := str(Path.cwd())) not in sys.path:
        sys.path.insert(0, here)
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name and (module_name == error.name or module_name.startswith(f"{error.name}.")):
            raise ApplicationError(
                f"{reference!r}: there is no module {error.name!r} in {here} or on the Python path"
            ) from None
        raise ApplicationError(_import_failure(reference, error)) from error
    except Exception as error:
        raise ApplicationError(_import_failure(reference, error)) from error
    app = getattr(module, attribute, None)
    if not isinstance(app, App):
        found = "nothing" if app is None else f"a {type(app).__name__}"
        raise ApplicationError(f"{reference!r}: expected a foliot.App in {module_name}.{attribute}, found {found}")
    return app


def _import_failure(reference: str, error: Exception) -> str:
    """The error of a module, with the traceback from the module on."""
    here = error.__traceback__
    while here is not None and here.tb_frame.f_code.co_filename.startswith(IMPORTERS):
        here = here.tb_next
    text = "".join(traceback.format_exception(type(error), error, here)).rstrip()
    return f"{reference!r}: the module can't be imported\n{text}"
