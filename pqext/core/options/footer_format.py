"""The forms that a footer is written in.

Spec: "File format" (the Thrift footer) and "Binary Protocol Extensions" (the others).
"""

from __future__ import annotations

from typing import Literal, get_args

FooterForm = Literal["thrift", "thrift+index", "thrift+flatbuffers", "flatbuffers"]
FORMS: tuple[FooterForm, ...] = get_args(FooterForm)


def check_form(form: object) -> None:
    """Raise ``ValueError`` for a form that there is not."""
    if form not in FORMS:
        listed = ", ".join(f'"{one}"' for one in FORMS[:-1])
        raise ValueError(f'footer must be {listed} or "{FORMS[-1]}", not {form!r}')


def check_beside(form: FooterForm, *, encrypted: bool, extended: bool, profile: str | None) -> None:
    """Raise ``ValueError`` for a form that cannot be had with encryption, an extension of the footer or a profile."""
    check_form(form)
    if form == "thrift":
        return
    if encrypted:
        raise ValueError(f"a file with footer={form!r} cannot be encrypted: leave out one of them")
    if extended and form != "flatbuffers":
        raise ValueError(f"footer={form!r} takes the place of extensions['file']: leave out one of them")
    if profile == "spark" and form == "flatbuffers":
        raise ValueError('Spark does not read files with footer="flatbuffers"; profile="spark" forbids it')
