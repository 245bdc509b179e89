"""Takes secrets out of a bundle: `rules` say what may be one, `searching` finds it again, `redactor` replaces it."""
