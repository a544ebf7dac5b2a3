"""Context packs as answers: how their parts look, what fits, and the text that is compiled of them."""
