"""The sections of the HTML page on what is sent: message sizes, fused buckets, partners, communicators."""

from __future__ import annotations

from stretto.profile_model import Profile
from stretto.profile_report import figures, views
from stretto.profile_report.markup import (
    Html,
    Section,
    bar,
    columns_of,
    figure,
    folded_table,
    heading,
    note,
    number,
    paragraph,
    table,
    text,
)
from stretto.profile_report.sections import absent, missing
from stretto.wording import NONE, count, duration, plural, size


def sizes(profile: Profile) -> Section:
    found = views.histograms(profile)
    if not found:
        return absent(profile, "sizes", "Message sizes", "sizes")
    bins = figures.size_bins([row["upper"] for _, _, rows in found for row in rows])
    drawings = "".join(figures.histogram(*one, bins) for one in found)
    caption = (
        "Calls (above) and time (below) by bytes per call, in bins (2ⁿ⁻¹, 2ⁿ]; the largest values are written out. Bars are "
        "divided by where the buffers are: in host, device or managed memory."
    )
    content = [figure(f'<div class="pair">{drawings}</div>', caption, "after Temuçin 2021, Fig. 3.7–3.10"), _size_table(profile)]
    return Section("sizes", "Message sizes", "".join(content) + _buckets(profile))


def _size_table(profile: Profile) -> Html:
    rows = views.size_rows(profile, 60)
    most = max((row["time"] or 0) for row in rows) or 1.0
    shown = [
        (
            *views.size_words(row),
            count(row["calls"]),
            size(row["bytes"]),
            bar((row["time"] or 0) / most, duration(row["time"])),
        )
        for row in rows
    ]
    columns = (
        text("function"),
        number("bytes per call"),
        text("datatype"),
        text("op"),
        text("buffers"),
        text("use", "a guess from size and operation: sums (in training: gradients), control messages, parameters"),
        number("calls"),
        number("bytes"),
        number("time"),
    )
    caption = Html('By datatype, operation and use. <span class="after">after Temuçin 2021, section 3.3</span>')
    return folded_table(columns, shown, 12, caption)


def _buckets(profile: Profile) -> str:
    rows = profile.table("buckets").sort("bytes", descending=True).to_dicts()
    if not rows:
        return heading("Fused buckets") + missing(profile, "buckets")
    columns = (
        text("function"),
        text("communicator"),
        number("bytes"),
        text("datatype"),
        number("per iteration"),
        number("iterations"),
    )
    shown = [
        (
            row["function"],
            row["communicator"],
            size(row["bytes"]),
            row["datatype"],
            row["per_iteration"],
            count(row["iterations"]),
        )
        for row in rows[:24]
    ]
    said = paragraph("Large reductions that come back in every iteration; in training, gradients that were fused.")
    return heading("Fused buckets") + said + table(columns, shown)


def partners(profile: Profile) -> Section:
    if not profile.table("partners").height:
        return absent(profile, "partners", "Partners", "partners")
    found = views.matrix(profile)
    pair = columns_of(figures.partner_matrix(found, False), figures.partner_matrix(found, True))
    caption = (
        "From the sender's side, puts and gets included; darker is more (a logarithmic scale), empty is none. In cells of bytes, "
        "K, M and G are powers of 1024."
    )
    if found.parts and found.parts[0].first != found.parts[0].last:
        caption += f" A cell stands for {found.parts[0].last + 1} × {found.parts[0].last + 1} ranks."
    if found.unknown_calls:
        caption += f" {count(found.unknown_calls)} calls whose partner could not be told are left out."
    return Section("partners", "Partners", figure(pair, caption, "after Temuçin 2021, Fig. 3.11"))


def crossing(profile: Profile) -> Section:
    rows = views.crossing_rows(profile)
    if not rows:
        return absent(profile, "crossing", "Between nodes", "crossing")
    shown = [
        (
            row["what"],
            row["communicator"] or NONE,
            row["carried"] or NONE,
            count(row["calls"]),
            size(row["sent"]),
            size(row["crossed"]),
            row["known"],
        )
        for row in rows
    ]
    columns = (
        text("what"),
        text("communicator"),
        text("carried by"),
        number("calls"),
        number("sent", "bytes that ranks contributed"),
        number("crossed nodes", "bytes, over all nodes"),
        text("known", "how well the bytes are known"),
    )
    total, how = views.crossing_total(rows)
    said = paragraph(
        f"{how.capitalize()}{size(total)} crossed from node to node. Exact: messages, by the nodes of their ends, and what "
        "Stretto gave to MPI for other nodes. At least: what the pattern has to send between nodes, where the MPI library's own "
        "algorithm moved it. Estimate: the same with blocks taken for equal."
    )
    return Section("crossing", "Between nodes", said + folded_table(columns, shown, 16))


def communicators(profile: Profile) -> Section:
    rows, unused = views.communicator_rows(profile)
    if not rows:
        return absent(profile, "communicators", "Communicators", "communicators")
    most = max((row["time"] or 0) for row in rows) or 1.0
    shown = [
        (
            row["name"] or "unnamed",
            row["parent"] or NONE,
            row["size"],
            row["nodes"] or NONE,
            count(row["calls"]),
            size(row["bytes"]),
            bar((row["time"] or 0) / most, duration(row["time"])),
            f"{row['identity'] or 0:016x}",
        )
        for row in rows
    ]
    columns = (
        text("communicator"),
        text("made from"),
        number("ranks"),
        number("nodes"),
        number("calls"),
        number("bytes"),
        number("time"),
        text("identity"),
    )
    said = note(f"{plural(unused, 'more communicator')} that no call was made on.") if unused else ""
    return Section("communicators", "Communicators", folded_table(columns, shown, 16) + said)
