"""Will this language model run on this GPU, how well, and what should you change?"""

__version__ = "0.1.0"
