"""The bundled sample day: invented stories and articles, served without a network."""
