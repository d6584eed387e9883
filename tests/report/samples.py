"""Hand-made advice: one sample per situation, with figures of plausible size."""

from __future__ import annotations

from msgspec.structs import replace

from advisor.advice.conclusions import BarredOption, Conclusions, FiredNote, RankedOption, ScoreTerm
from advisor.advice.document import Because, Provenance
from advisor.knowledge.types import Format, Framework, Gpu, KvType
from advisor.models.shape import LLAMA_BLOCKS, Moe, Shape
from advisor.models.stored_tensors import Model
from advisor.remedies.option import Option
from advisor.scenario import Scenario
from advisor.scenario.figures import CardMemory, Figure, Limits, Memory, Span, Speed
from advisor.scenario.settings import Request
from advisor.units import GIB

RTX_4090 = Gpu(
    name="GeForce RTX 4090",
    aliases=("RTX 4090",),
    vendor="NVIDIA",
    segment="consumer",
    architecture="Ada Lovelace",
    compute_capability=8.9,
    vram_bytes=24 * GIB,
    vram_type="GDDR6X",
    bandwidth_bytes_s=1008e9,
    cores=16384,
    tensor_cores=512,
    fp16_tensor_tflops_fp32acc=165.2,
    tdp_w=450,
    unified_memory=False,
    released="2022-09-20",
    launch_price_usd=1599,
)
RTX_4000_ADA = replace(
    RTX_4090,
    name="RTX 4000 Ada Generation",
    segment="workstation",
    vram_bytes=20 * GIB,
    vram_type="GDDR6",
    bandwidth_bytes_s=360e9,
    cores=6144,
    tensor_cores=192,
    tdp_w=130,
    launch_price_usd=1250,
)
RTX_6000 = replace(
    RTX_4090, name="RTX PRO 6000", vram_bytes=96 * GIB, vram_type="GDDR7", launch_price_usd=None
)
M4_MAX = Gpu(
    name="Apple M4 Max (40-core GPU)",
    aliases=(),
    vendor="Apple",
    segment="apple",
    architecture="Apple GPU",
    vram_bytes=64 * GIB,
    vram_type="unified LPDDR",
    bandwidth_bytes_s=546e9,
    cores=40,
    unified_memory=True,
)
NO_BANDWIDTH = Gpu(
    name="Mystery Card",
    aliases=(),
    vendor="Intel",
    segment="consumer",
    architecture="Xe",
    vram_bytes=16 * GIB,
)


def _format(name: str, nominal: float | None, bits: float, loss: float | None) -> Format:
    return Format(name, (), "gguf-k", "gguf", bits, round(bits), nominal, loss)


FP16 = _format("FP16", 2.0, 16.0, 0.0)
Q8_0 = _format("Q8_0", 1.0, 8.5, 0.1)
INT8 = _format("INT8", 1.0, 8.0, None)
Q4_K_M = _format("Q4_K_M", 0.5, 4.5, 2.8)
Q3_K_M = _format("Q3_K_M", 0.4, 3.4375, 10.5)
F16_CACHE = KvType("f16", 16.0)
Q8_CACHE = KvType("q8_0", 8.5, 0.1)


def _framework(name: str, *, offloads: bool) -> Framework:
    return Framework(
        name=name,
        aliases=(),
        version="1",
        vendors=("NVIDIA",),
        formats=("FP16",),
        model_types=("*",),
        kv_types=("f16",),
        memory_model="llama.cpp",
        cpu_offload=offloads,
    )


LLAMA_CPP = _framework("llama.cpp", offloads=True)
VLLM = _framework("vLLM", offloads=False)


def _shape(layers: int, moe: Moe | None = None) -> Shape:
    return Shape(
        model_type="llama",
        layers=layers,
        hidden=4096,
        vocab=32000,
        heads=32,
        kv_heads=8,
        head_dim=128,
        intermediate=11008,
        tied=False,
        layer_kinds="F" * layers,
        ffn_kinds=("E" if moe else "D") * layers,
        moe=moe,
        blocks=LLAMA_BLOCKS,
    )


def _model(name: str, parameters: int, label: float, trained: int, layers: int = 40) -> Model:
    return Model(
        name=name,
        family=name.split("-", maxsplit=1)[0],
        modality="text",
        shape=_shape(layers),
        parameters=parameters,
        active_parameters=parameters,
        vision_parameters=0,
        label_parameters_b=label,
        trained_context_tokens=trained,
        licence="mit",
    )


PHI_MEDIUM = _model("phi-3-medium-14b", 13_960_238_080, 14.0, 4096)
PHI_SMALL = _model("phi-3-small-7b", 7_392_272_384, 7.0, 8192, 32)
GEMMA = _model("gemma-2-27b", 27_227_128_320, 27.0, 8192, 46)
LLAVA = replace(
    _model("llava-1.6-13b", 13_350_839_296, 13.0, 4096),
    modality="vision",
    vision_parameters=334_000_000,
    image_tokens="up to 2,928",
)
LLAVA_7B = replace(LLAVA, name="llava-1.5-7b", parameters=7_063_427_072, label_parameters_b=7.0)
MIXTRAL = replace(
    _model("mixtral-8x7b", 46_702_792_704, 46.7, 32768, 32),
    shape=_shape(32, Moe(8, 2, 14336)),
    active_parameters=12_879_925_248,
)


def scenario(gpu: Gpu, model: Model, form: Format, **changes: object) -> Scenario:
    base = Scenario(
        gpu=gpu,
        gpus=1,
        model=model,
        precision=form,
        context_tokens=4096,
        batch=1,
        kv_cache_k=F16_CACHE,
        kv_cache_v=F16_CACHE,
        framework=LLAMA_CPP,
        backend="CUDA",
        flash_attention=True,
        ubatch=512,
        kv_unified=True,
        swa_full=False,
        gpu_layers=None,
        cpu_experts=0,
        logits_rows=1,
        depth_tokens=0,
        ram_bytes=None,
        ram_bandwidth_bytes_s=None,
        cpu_cores=None,
        prefer="balanced",
    )
    return replace(base, **changes)


def memory(
    card: Scenario,
    weights: float,
    kv: float,
    *,
    nominal: float | None = None,
    bits: float | None = None,
    host: float = 0.0,
    reserve: float = 0.7,
) -> Memory:
    """Sizes in GiB; 0.6 of buffers and 0.4 of overhead per card."""
    gpus = card.gpus
    capacity = card.gpu.vram_bytes if card.gpu else None
    assert capacity is not None
    usable = capacity - round(reserve * GIB)
    one = CardMemory(
        card.gpu.name if card.gpu else "",
        capacity,
        usable,
        round((weights + kv) / gpus * GIB) + GIB,
        round(weights / gpus * GIB),
        round(kv / gpus * GIB),
        round(0.6 * GIB),
        round(0.4 * GIB),
        round((weights + kv) / gpus * GIB) + GIB,
        round((weights + kv) / gpus * GIB) + GIB,
    )
    free = usable - one.required_bytes
    total = one.required_bytes * gpus
    return Memory(
        capacity_bytes=capacity * gpus,
        usable_bytes=usable * gpus,
        required_bytes=total,
        deficit_bytes=max(0, -free),
        headroom_bytes=max(0, free),
        weights_bytes=one.weights_bytes * gpus,
        kv_cache_bytes=one.kv_cache_bytes * gpus,
        compute_buffer_bytes=one.compute_buffer_bytes * gpus,
        overhead_bytes=one.overhead_bytes * gpus,
        host_weights_bytes=round(host * GIB),
        host_kv_cache_bytes=0,
        host_compute_bytes=0,
        nominal_weights_gb=nominal,
        per_gpu=(one,) * gpus,
        low_bytes=total,
        high_bytes=total,
        approximate=(),
        bits_per_weight=bits,
    )


def speed(decode: float, *, evidence: str = "near", bound: str = "bandwidth") -> Speed:
    figure = Figure(decode, decode * 0.84, decode * 1.18, evidence)  # type: ignore[arg-type]  # test data
    whole = replace(figure, estimate=decode * 6, low=decode * 5, high=decode * 7)
    prompt = replace(figure, estimate=decode * 40, low=decode * 30, high=decode * 50)
    return Speed(0, figure, prompt, whole, bound, None, 0, 0)  # type: ignore[arg-type]  # test data


def option(
    action: str,
    change: dict[str, object],
    card: Scenario,
    held: Memory,
    decode: float | None = None,
    *,
    loss: float | None = 0.0,
    cost: float | None = None,
    effort: str = "setting",
) -> Option:
    return Option(
        key=f"{action}:{sorted(change.items())}",
        action=action,
        change=change,
        scenario=card,
        memory=held,
        speed=_drafted(speed(decode), card) if decode else None,
        fits=held.deficit_bytes == 0,
        steps=1,
        quality_loss_percent=loss,
        quality_cost_percent=loss,
        cost_usd=cost,
        effort=effort,  # type: ignore[arg-type]  # test data
    )


def _drafted(found: Speed, card: Scenario) -> Speed:
    plain = found.decode_tok_s
    return (
        replace(found, speculative_tok_s=Span(plain.low * 0.6, plain.high * 1.8))
        if card.draft_model
        else found
    )


def recommend(*options: Option) -> tuple[RankedOption, ...]:
    because = (
        Because("fit.state", "needs_offload", "one of needs_offload, too_big", "needs_offload"),
    )
    return tuple(
        RankedOption(
            rank=number,
            rule=f"{item.action}-to-fit",
            option=item,
            text_template=f"{item.action}.md.j2",
            score=90.0 - number,
            score_terms=(ScoreTerm("base", 80.0), ScoreTerm("-3 x 0.1 %", -0.3)),
            because=because,
            confidence="high",
            command=COMMAND,
        )
        for number, item in enumerate(options, 1)
    )


MEASURED = Figure(22.4, 20.0, 25.0, "measured", "a published list", 21.0)
COMMAND = (
    "llama-server --model 'my models/model.gguf' --ctx-size 4096 --gpu-layers 99 "
    "--flash-attn on --cache-type-k f16 --cache-type-v f16 --parallel 1"
)


def advice(
    card: Scenario,
    held: Memory,
    state: str,
    *,
    pace: Speed | None = None,
    options: tuple[Option, ...] = (),
    notes: tuple[str, ...] = (),
    limits: Limits | None = None,
    facts: dict[str, float | str | bool] | None = None,
    missing: tuple[str, ...] = (),
    warnings: tuple[str, ...] = (),
) -> Conclusions:
    barred = option("quantize", {"precision": "Q2_K"}, card, held)
    return Conclusions(
        request=Request(
            gpu=card.gpu.name if card.gpu else None,
            model=card.model.name,
            precision=card.precision.name,
        ),
        scenario=card,
        memory=held,
        limits=limits or Limits(None, None),
        speed=pace,
        speed_full=None,
        state=state,  # type: ignore[arg-type]  # test data
        facts=facts or {},
        recommendations=recommend(*options),
        notes=tuple(FiredNote(name, f"{name}.md.j2", 1.0, ()) for name in notes),
        not_recommended=(
            BarredOption(barred, "no-tiny-bits", "Quality falls too far at this few bits.", tuple),
        ),
        superseded=(),
        fired=(),
        options=options,
        warnings=warnings,
        missing=missing,
        provenance=Provenance("0.1.0", "a" * 64, "b" * 64, "c" * 64, "reference"),
    )


def fits_amply() -> Conclusions:
    card = scenario(RTX_4090, PHI_SMALL, INT8)
    held = memory(card, 7.2, 0.5, nominal=7.0, bits=8.3)
    wider = replace(card, batch=12)
    drafted = replace(card, draft_model=replace(PHI_SMALL, name="phi-3-draft-1b"))
    leaner = replace(card, precision=Q4_K_M)
    return advice(
        card,
        held,
        "fits",
        pace=speed(95.2),
        options=(
            option("grow-batch", {"batch": 12}, wider, memory(wider, 7.2, 6.0), 88.0),
            option("speculative", {"draft_model": "phi-3-draft-1b"}, drafted,
                   memory(drafted, 8.2, 0.7), 140.0, effort="download"),
            option("quantize", {"precision": "Q4_K_M"}, leaner, memory(leaner, 4.2, 0.5), 150.0,
                   loss=2.8, effort="download"),
            option("change-framework", {"framework": "vLLM"}, replace(card, framework=VLLM),
                   memory(card, 7.2, 0.5), 98.0, effort="rebuild"),
        ),
        notes=("cooling", "bandwidth-limited", "monitoring", "room-to-grow", "drivers",
               "kv-heavy", "long-context-speed", "serving-framework"),
        limits=Limits(8192, 27),
        facts={"speed.class": "fast", "gpu.bandwidth_class": "high"},
    )  # fmt: skip


def does_not_fit() -> Conclusions:
    card = scenario(RTX_4090, PHI_MEDIUM, FP16)
    held = memory(card, 26.0, 0.8, nominal=28.0, bits=16.0)
    smaller = replace(card, precision=Q8_0)
    split = replace(card, gpu_layers=31)
    two = replace(card, gpus=2)
    bigger = replace(card, gpu=RTX_6000)
    rented = replace(bigger, batch=1)
    return advice(
        card,
        held,
        "needs_offload",
        pace=speed(50.0),
        options=(
            option("quantize", {"precision": "Q8_0"}, smaller, memory(smaller, 13.8, 0.8), 58.0,
                   loss=0.1, effort="download"),
            option("offload-layers", {"gpu_layers": 31}, split,
                   memory(split, 20.0, 0.8, host=6.0)),
            option("add-gpus", {"gpus": 2}, two, memory(two, 26.0, 0.8), 30.0, cost=1599,
                   effort="purchase"),
            option("upgrade-gpu", {"gpu": "RTX PRO 6000"}, bigger, memory(bigger, 26.0, 0.8), 49.0,
                   effort="purchase"),
            option("cloud", {"gpu": "RTX PRO 6000"}, rented, memory(rented, 26.0, 0.8), 49.0,
                   effort="purchase"),
        ),
        notes=("rule-of-thumb", "spill-warning", "ram-needed", "monitoring",
               "drivers", "pruned", "flash-attention"),
        facts={"host.ram_needed": 6.5 * GIB, "fit.cause": "weights"},
        missing=("host.ram_bandwidth",),
    )  # fmt: skip


def too_big_vision() -> Conclusions:
    card = scenario(RTX_4000_ADA, LLAVA, FP16, framework=VLLM)
    held = memory(card, 24.9, 3.1, nominal=26.0, bits=16.0)
    smaller = replace(card, precision=Q4_K_M, framework=LLAMA_CPP)
    sibling = replace(card, model=LLAVA_7B)
    both = replace(smaller, context_tokens=2048)
    moved = replace(card, framework=LLAMA_CPP, precision=Q8_0)
    return advice(
        card,
        held,
        "too_big",
        options=(
            option("combine", {"precision": "Q4_K_M", "context": 2048, "framework": "llama.cpp"},
                   both, memory(both, 7.6, 1.6), 30.0, loss=2.8, effort="rebuild"),
            option("smaller-model", {"model": "llava-1.5-7b"}, sibling,
                   memory(sibling, 13.2, 2.0), 21.0, loss=None, effort="download"),
            option("change-framework", {"framework": "llama.cpp", "precision": "Q8_0"}, moved,
                   memory(moved, 13.2, 3.1), 20.0, effort="rebuild"),
        ),
        notes=("image-tokens", "low-bandwidth", "fine-tune-smaller", "disputed-figure",
               "gguf-in-vllm", "paged-memory-claim"),
    )  # fmt: skip


def tight_quantized() -> Conclusions:
    card = scenario(RTX_4000_ADA, GEMMA, Q3_K_M, context_tokens=8192, cpu_cores=4)
    held = memory(card, 12.5, 5.1, nominal=10.8, bits=3.94)
    ranged = replace(held, low_bytes=18 * GIB, high_bytes=19 * GIB, approximate=("work buffers",))
    shorter = replace(card, context_tokens=4096)
    cached = replace(card, kv_cache_k=Q8_CACHE, kv_cache_v=Q8_CACHE)
    return advice(
        card,
        ranged,
        "tight",
        pace=replace(speed(22.4), decode_tok_s=MEASURED),
        options=(
            option("quantize-kv", {"kv_cache": "q8_0"}, cached, memory(cached, 12.5, 2.7), 22.0,
                   loss=0.1),
            option("shrink-context", {"context": 4096}, shorter, memory(shorter, 12.5, 2.6), 23.0),
        ),
        notes=("tight-headroom", "small-cpu", "quality-risk", "approximate-memory", "kv-heavy",
               "compute-limited", "old-card"),
        limits=Limits(9216, 1),
        facts={"speed.class": "comfortable"},
    )  # fmt: skip


def unified_memory() -> Conclusions:
    card = scenario(M4_MAX, GEMMA, Q8_0, backend="Metal", prefer="quality")
    held = memory(card, 27.0, 1.3, nominal=27.0, bits=8.5, reserve=16.0)
    finer = replace(card, precision=FP16)
    return advice(
        card,
        held,
        "fits",
        pace=speed(15.6, evidence="modelled"),
        options=(
            option("quantize", {"precision": "BF16"}, finer,
                   memory(finer, 40.7, 1.3, reserve=16.0), 8.4, loss=-0.1, effort="download"),
        ),
        notes=("unified-memory", "speed-rough", "drivers", "monitoring", "laptop-power"),
        limits=Limits(8192, 20),
    )  # fmt: skip


def unknown_bandwidth() -> Conclusions:
    card = scenario(NO_BANDWIDTH, PHI_SMALL, Q4_K_M, context_tokens=16384)
    held = memory(card, 4.2, 2.0, nominal=3.5, bits=4.8)
    return advice(
        card,
        held,
        "fits",
        notes=("speed-unknown", "context-beyond-training", "drivers", "monitoring"),
        limits=Limits(8192, 3),
        missing=("gpu.bandwidth", "gpu.tdp"),
        warnings=("The card was read as Mystery Card; there is also a laptop version.",),
    )


def offloaded_moe() -> Conclusions:
    card = scenario(
        RTX_4090,
        MIXTRAL,
        Q4_K_M,
        batch=4,
        cpu_experts=18,
        ram_bytes=64 * GIB,
        ram_bandwidth_bytes_s=80e9,
    )
    held = memory(card, 24.3, 2.0, nominal=23.4, bits=4.9, host=12.0)
    more = replace(card, cpu_experts=24)
    fewer = replace(card, batch=1)
    return advice(
        card,
        held,
        "needs_offload",
        pace=speed(14.0, evidence="extrapolated", bound="offload"),
        options=(
            option("offload-experts", {"cpu_experts": 24}, more,
                   memory(more, 12.0, 2.0, host=16.0), 9.4),
            option("shrink-batch", {"batch": 1}, fewer, memory(fewer, 20.3, 0.5, host=12.0), 14.5),
        ),
        notes=("moe-routing", "ram-needed", "multi-gpu-link", "spill-warning"),
        facts={"host.ram_needed": 4.0 * GIB},
    )  # fmt: skip


def stated_split() -> Conclusions:
    card = scenario(
        RTX_4090,
        PHI_MEDIUM,
        FP16,
        gpu_layers=31,
        ram_bytes=64 * GIB,
        ram_bandwidth_bytes_s=80e9,
    )
    held = memory(card, 19.0, 0.6, nominal=28.0, bits=16.0, host=7.2)
    return advice(
        card,
        held,
        "fits",
        pace=speed(8.4, evidence="extrapolated", bound="offload"),
        notes=("ram-needed", "speed-rough"),
        limits=Limits(4096, 3),
    )


def two_cards() -> Conclusions:
    card = scenario(RTX_4090, PHI_MEDIUM, FP16, gpus=2, batch=2)
    held = memory(card, 26.0, 1.6, nominal=28.0, bits=16.0)
    return advice(
        card,
        held,
        "fits",
        pace=speed(31.0, evidence="extrapolated"),
        notes=("cooling", "multi-gpu-link"),
        limits=Limits(4096, 9),
    )


SAMPLES = {
    "fits": fits_amply,
    "does not fit": does_not_fit,
    "too big, vision": too_big_vision,
    "tight": tight_quantized,
    "unified memory": unified_memory,
    "unknown bandwidth": unknown_bandwidth,
    "mixture of experts, offloaded": offloaded_moe,
    "stated split": stated_split,
    "two cards": two_cards,
}
