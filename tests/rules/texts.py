"""Rule files that the tests share."""

CASES = """  cases:
    - {name: hot, given: {gpu: RTX 4090}, expect: fires}
    - {name: cool, given: {gpu: RTX 4060}, expect: silent}
"""


def note(when: str, name: str = "hot-card") -> str:
    """Write a rule file with one note; ``when`` is the block in flow style or indented by 4."""
    block = f" {when}" if when.startswith("{") else "\n" + when
    return (
        f"- rule: {name}\n  why: Heat slows the card down.\n  source: board maker\n"
        f"  when:{block}\n  note: Mind the airflow.\n{CASES}"
    )


FULL = """\
- rule: too-big
  why: Memory is missing.
  when:
    memory.deficit: above 0 GB
  conclude: {fit.state: too_big}
  cases:
    - {name: big, given: {gpu: RTX 4090, model: phi-3-medium, precision: FP16}, expect: fires}
    - {name: small, given: {gpu: RTX 4090, model: phi-3-mini, precision: INT8}, expect: silent}

- rule: quantize-to-fit
  why: A smaller weight format brings the whole model into memory.
  source: measured perplexities
  status: experimental
  since: 0.1
  when:
    fit.state: one of needs_offload, too_big
    option.family: is quantize
    option.fits: is yes
    option.quality_loss: at most 5 %
    option.required: at most memory.usable
    gpu.nvlink: is unknown
    any:
      - request.gpus: is 1
      - {gpu.bandwidth: between 500 and 2000 GB/s, gpu.laptop: is no}
    not:
      gpu.segment: one of apple, edge
      gpu.tdp: above 0.5 kW
  recommend:
    action: quantize
    score:
      base: 80
      add:
        - {per: option.quality_loss, points: -3 per %}
        - {per: option.decode_speed, points: 0.1 per tok/s, cap: 10}
        - {per: option.context, points: 2 per 1000 tokens}
        - {per: option.steps, points: -4 each}
      when:
        - {request.prefer: is quality, option.bits_per_weight: at least 6 bit, points: 5}
    supersedes: [offload-layers]
    text: quantize.md.j2
  cases:
    - name: Phi-3 Medium FP16 on a 4090
      given: {gpu: RTX 4090, model: phi-3-medium, precision: FP16, context: 4096}
      expect: fires
      change: {precision: Q8_0}
      rank: 1
      says: smaller
    - name: already fits
      given: {gpu: RTX 4090, model: phi-3-small, precision: INT8, flash_attention: yes}
      expect: silent

- rule: offload-layers
  why: Some layers can wait in system RAM.
  source: house ranking
  when: {option.family: is offload-layers}
  recommend: {action: offload-layers, score: {base: 30}, text: offload.md.j2}
  cases:
    - {name: big, given: {gpu: RTX 4090, model: phi-3-medium}, expect: fires}
    - {name: small, given: {gpu: RTX 4090, model: phi-3-mini}, expect: silent}

- rule: no-two-bits
  why: Too much is lost below 3.5 bits.
  source: measured perplexities
  status: deprecated
  replaced_by: quantize-to-fit
  when: {option.bits_per_weight: below 3.5 bit}
  veto: Quality falls too far below 3.5 bits.
  cases:
    - {name: big, given: {gpu: RTX 4090, model: phi-3-medium}, expect: fires}
    - {name: small, given: {gpu: RTX 4090, model: phi-3-mini}, expect: silent}

- rule: mind-the-heat
  why: A hot card slows down.
  source: board maker
  when: {gpu.tdp: at least 300 W}
  note: {text: heat.md.j2, score: 20}
  cases:
    - {name: hot, given: {gpu: RTX 4090}, expect: fires}
    - {name: cool, given: {gpu: RTX 4060}, expect: silent}
"""

LADDER = """\
- ladder: bandwidth-class
  why: Decoding follows the bandwidth.
  source: spread of the cards on sale
  over: gpu.bandwidth
  conclude: gpu.bandwidth_class
  rows:
    - {to: 300 GB/s, value: low}
    - {from: 300 GB/s, to: 1 TB/s, value: medium}
    - {from: 1000 GB/s, value: high}
  cases:
    - {name: slow, given: {gpu: GTX 1650}, expect: low}
    - {name: middling, given: {gpu: RTX 4070}, expect: medium}
    - {name: fast, given: {gpu: RTX 4090}, expect: high}
"""

TABLE = """\
- ladder: fit-gap
  why: A large model leaves fewer ways out.
  source: house judgement
  when: {memory.deficit: above 0 GiB}
  over: [memory.deficit_share, model.parameters]
  conclude: fit.gap
  rows:
    - {memory.deficit_share: {to: 30 %}, model.parameters: {to: 8 B}, value: slight}
    - {memory.deficit_share: {from: 30 %}, model.parameters: {to: 8 B}, value: large}
    - {model.parameters: {from: 8 B}, value: large}
  cases:
    - {name: nearly, given: {gpu: RTX 4060}, expect: slight}
    - {name: far off, given: {gpu: GTX 1650}, expect: large}
    - {name: fits, given: {gpu: RTX 4090}, expect: silent}
"""
