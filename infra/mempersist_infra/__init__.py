"""The program that provisions and deploys the archive: settings, components, gates and providers."""
