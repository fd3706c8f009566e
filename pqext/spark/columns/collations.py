"""Names of Spark's collations, which a file may spell in several ways or make up."""

from __future__ import annotations

_LOCALES = [
    "UNICODE", "af", "am", "ar", "ar_SAU", "as", "az", "be", "bg", "blo", "bn", "bo", "br", "bs", "bs_Cyrl", "ca",
    "ceb", "chr", "cs", "cy", "da", "de", "de_AUT", "dsb", "dz", "ee", "el", "en", "en_USA", "eo", "es", "et",
    "fa", "fa_AFG", "ff", "ff_Adlm", "fi", "fil", "fo", "fr", "fr_CAN", "fy", "ga", "gl", "gu", "ha", "haw", "he",
    "he_ISR", "hi", "hr", "hsb", "hu", "hy", "id", "id_IDN", "ig", "is", "it", "ja", "ka", "kk", "kk_Arab", "kl",
    "km", "kn", "ko", "kok", "ku", "ky", "lb", "lij", "lkt", "ln", "lo", "lt", "lv", "mk", "ml", "mn", "mr", "ms",
    "mt", "my", "nb", "nb_NOR", "ne", "nl", "nn", "no", "nso", "om", "or", "pa", "pa_Guru", "pa_Guru_IND", "pl",
    "ps", "pt", "ro", "ru", "sa", "se", "si", "sk", "sl", "smn", "sq", "sr", "sr_Cyrl", "sr_Cyrl_BIH",
    "sr_Cyrl_MNE", "sr_Cyrl_SRB", "sr_Latn", "sr_Latn_BIH", "sr_Latn_SRB", "st", "sv", "sw", "ta", "te", "th",
    "tk", "tn", "to", "tr", "ug", "uk", "ur", "uz", "vi", "wae", "wo", "xh", "yi", "yo", "zh", "zh_Hans",
    "zh_Hans_CHN", "zh_Hans_SGP", "zh_Hant", "zh_Hant_HKG", "zh_Hant_MAC", "zh_Hant_TWN", "zu",
]  # fmt: skip
_BASES = {name.lower(): name for name in ("UTF8_BINARY", "UTF8_LCASE", *_LOCALES)}
_SPECIFIERS = (("CI", "CS"), ("AI", "AS"), ("RTRIM",))
"""Specifiers after the name, of which each collation has at most one of a group; CS and AS are the default."""


def canonical_collation(name: str) -> str:
    """The name as Spark spells it. Raises ``ValueError`` for a collation that Spark does not have.

    >>> canonical_collation("de_ai_CI"), canonical_collation("utf8_lcase"), canonical_collation("UNICODE_CS")
    ('de_CI_AI', 'UTF8_LCASE', 'UNICODE')
    """
    words = name.split("_")
    bases = [count for count in (3, 2, 1) if "_".join(words[:count]).lower() in _BASES]
    if not bases:
        raise ValueError(f"no collation {name!r}")
    base = _BASES["_".join(words[: bases[0]]).lower()]
    specifiers = [word.upper() for word in words[bases[0] :]]
    groups = _SPECIFIERS[2:] if base.startswith("UTF8") else _SPECIFIERS
    chosen = [[word for word in specifiers if word in group] for group in groups]
    if sum(map(len, chosen)) != len(specifiers) or any(len(words) > 1 for words in chosen):
        raise ValueError(f"no collation {name!r}")
    return "_".join([base, *(word for words in chosen for word in words if word not in ("CS", "AS"))])
