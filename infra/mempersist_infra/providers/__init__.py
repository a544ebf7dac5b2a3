"""Resources that pulumi-cloudflare lacks. Their classes are pickled by name, so modules and names here never move."""
