"""The ports over a deployment's own stores, from outside of Cloudflare: R2 over S3, the others over the REST API."""
