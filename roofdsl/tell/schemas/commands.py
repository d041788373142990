"""Which command prints which document with `--json`, and its complete schema."""

from __future__ import annotations

from collections.abc import Mapping

from roofdsl.lang.diagnostics import CommandError
from roofdsl.lang.findings import did_you_mean
from roofdsl.tell.schemas import derivations, lists, predictions, runs
from roofdsl.tell.schemas.parts import COUNT, TEXT, Schema, either, maybe, needed, record, several

DIALECT = "https://json-schema.org/draft/2020-12/schema"

DEFINITIONS: Mapping[str, Schema] = {
    **derivations.DEFINITIONS, **predictions.DEFINITIONS, **runs.DEFINITIONS, **lists.DEFINITIONS,
}  # fmt: skip

COMMANDS: Mapping[str, tuple[str, Schema]] = {
    "check": ("roofdsl.check/1", lists.CHECK),
    "derive": ("roofdsl.derive/1", several("roofdsl.derive/1", ("derivation", "program_derivation"))),
    "bound": ("roofdsl.bound/1", several("roofdsl.bound/1", ("lower_bound",))),
    "predict": ("roofdsl.predict/1", several("roofdsl.predict/1", ("prediction", "program_prediction"))),
    "advise": ("roofdsl.advise/1", several("roofdsl.advise/1", ("advice",))),
    "sol": ("roofdsl.sol/1", several("roofdsl.sol/1", ("speed_of_light",))),
    "suite": ("roofdsl.suite/1", either(predictions.SUITE, predictions.SUITE_FORMS)),
    "sweep": ("roofdsl.sweep/1", predictions.SWEEP),
    "shard": ("roofdsl.shard/1", several("roofdsl.shard/1", ("shard",), "shards")),
    "collective": ("roofdsl.collective/1", predictions.COLLECTIVE),
    "threshold": ("roofdsl.threshold/1", several("roofdsl.threshold/1", ("threshold", "threshold_formula"))),
    "simulate": ("roofdsl.simulate/1", several("roofdsl.simulate/1", ("simulation",))),
    "emit": ("roofdsl.emit/1", runs.EMIT),
    "measure": ("roofdsl.measurement/1", several("roofdsl.measurement/1", ("measurement",))),
    "validate": ("roofdsl.validate/1", runs.VALIDATION),
    "import ncu": ("roofdsl.points/1", runs.POINTS),
    "exercise list": ("roofdsl.exercise/1", lists.EXERCISES),
    "exercise show": ("roofdsl.exercise/1", lists.EXERCISE),
    "exercise check": ("roofdsl.exercise/1", lists.JUDGED),
    "machines": ("roofdsl.machines/1", lists.MACHINES),
    "machines show": ("roofdsl.machine/1", lists.MACHINE),
    "machines flow": ("roofdsl.flow/1", lists.FLOW),
    "models": ("roofdsl.models/1", lists.MODELS),
    "cache info": ("roofdsl.cache/1", lists.CACHE),
}
"""By command: the name that the document has under `schema`, and the schema, which refers to DEFINITIONS."""

ERROR = record(
    {"error": record({"status": maybe(COUNT), "message": TEXT}, {"help": maybe(TEXT)})},
    about="why a call of the service could not be answered",
)


def schema_of(command: str) -> Schema:
    """The JSON Schema of what `roofdsl COMMAND --json` prints. Raises CommandError for a command without one."""
    if command not in COMMANDS:
        raise CommandError(
            f"there is no schema of `{command[:60]}`", did_you_mean(command, COMMANDS, "`roofdsl schema` lists them")
        )
    return _whole(f"roofdsl {command} --json", COMMANDS[command][1])


def answer_schema(command: str) -> Schema:
    """The same for an answer of the service, which can also be an error as data."""
    return _whole(f"an answer of {command}", either(COMMANDS[command][1], ERROR))


def _whole(title: str, schema: Schema) -> Schema:
    """With everything that the schema refers to; always an object, as the Model Context Protocol requires."""
    definitions = needed(schema, DEFINITIONS)
    whole: Schema = {"$schema": DIALECT, "title": title, "type": "object", **schema}
    return whole | ({"$defs": definitions} if definitions else {})
