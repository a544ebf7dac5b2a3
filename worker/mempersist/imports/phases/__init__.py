"""What a turn of an import does in each phase. Every module has one ``step``."""
