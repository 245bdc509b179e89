"""Replaces the names in a bundle: `names` finds them, `anonymiser` replaces them."""
