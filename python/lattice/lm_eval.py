"""lm-evaluation-harness with Lattice's models known to it: `python -m lattice.lm_eval` takes the arguments of `lm_eval`.

    python -m lattice.lm_eval --model hf --model_args pretrained=runs/book/checkpoints/latest --tasks lambada_openai
"""

import sys


def main() -> None:
    """Runs the harness's own command."""
    try:
        from lm_eval.__main__ import cli_evaluate
    except ImportError:
        sys.exit("lattice.lm_eval needs lm-evaluation-harness: pip install 'lm_eval[hf]'")
    import lattice.hf  # noqa: F401  (registers the models)

    cli_evaluate()


if __name__ == "__main__":
    main()
