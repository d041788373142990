"""Derived quantities from closed forms."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction

from roofdsl.counts.computed_once import NoClosedForm
from roofdsl.counts.derived import Quantity
from roofdsl.sets.cases import Cases, constant


def quantity(form: Callable[[], Cases], given: Mapping[str, int], value: Fraction | int | None = None) -> Quantity:
    """The result of `form`, or a note if there is no closed form.

    Its value is `value`, or else that of the form if `given` has all parameters and the form makes no further
    assumptions. A KeyError (an array that is never touched) means 0.
    """
    exact = None if value is None else Fraction(value)
    try:
        found = form()
    except NoClosedForm as error:
        return Quantity(None, exact, str(error))
    except KeyError:
        return Quantity(constant(0), Fraction(0))
    if exact is None:
        try:
            exact = found.evaluate(given) if not found.assumes else None
        except KeyError:
            exact = None
    return Quantity(found, exact)


def at_values(form: Cases, given: Mapping[str, int]) -> Quantity:
    """A known form as a quantity."""
    return quantity(lambda: form, given)
