#include "bench/output.hpp"

namespace stretto::bench {
namespace {

constexpr const char* mode_names[] = {"single", "batch", "loop"};  // as Mode counts

// Text between quotation marks: what JSON cannot hold as it is becomes a space.
void write_text(FILE* json, const char* text) {
  fputc('"', json);
  for (; text != nullptr && *text != '\0'; ++text)
    fputc(*text == '"' || *text == '\\' || uint8_t(*text) < 0x20 ? ' ' : *text, json);
  fputc('"', json);
}

void write_preload(FILE* json, const Preload& preload) {
  const char *why = "", *path = "", *header = "", *about = "";
  const bool accelerating = preload.accelerating != nullptr && preload.accelerating(&why) == 1;
  fputs(",\"stretto\":", json);
  if (preload.version != nullptr)
    write_text(json, preload.version());
  else
    fputs("null", json);
  fprintf(json, ",\"accelerating\":%s,\"why\":", accelerating ? "true" : "false");
  write_text(json, why);
  if (preload.tuning == nullptr || preload.tuning(&path, &header, &about) != 0) return;
  fputs(",\"tuning\":{\"path\":", json);
  write_text(json, path);
  fputs(",\"header\":", json);
  write_text(json, header);
  fputs(",\"about\":", json);
  write_text(json, about);
  fputc('}', json);
}

void write_side(FILE* json, const SidePoint& side, int ranks, bool with_ranks) {
  fprintf(json, "{\"median_us\":%.4f,\"p10_us\":%.4f,\"p90_us\":%.4f,\"samples\":%u", side.us.median, side.us.p10, side.us.p90,
          side.samples);
  if (with_ranks) {
    fputs(",\"exit_us\":[", json);
    for (int r = 0; r < ranks; ++r) fprintf(json, "%s%.3f", r ? "," : "", side.exits[size_t(r)]);
    fputs("],\"raster\":[", json);
    for (int r = 0; r < ranks; ++r) {
      const Seen& seen = side.typical[size_t(r)];
      fprintf(json, "%s[%.3f,%.3f,%.3f]", r ? "," : "", seen.planned, seen.entry, seen.exit);
    }
    fputc(']', json);
  }
  fputc('}', json);
}

}  // namespace

void write_setup(FILE* json, const Setup& setup) {
  fputs("{\"kind\":\"setup\",\"library\":", json);
  write_text(json, setup.library);
  fprintf(json, ",\"ranks\":%d,\"nodes\":%d,\"cores\":%d,\"crowded\":%s,\"pinned\":%s,\"clock\":\"%s\"", setup.ranks, setup.nodes,
          setup.cores, setup.crowded ? "true" : "false", setup.pinned ? "true" : "false", setup.clock);
  write_preload(json, setup.preload);
  fputs(",\"cpus\":[", json);
  for (int r = 0; r < setup.ranks; ++r) {
    fputs(r ? ",[" : "[", json);
    for (int cpu = 0, listed = 0; cpu < platform::max_cpus; ++cpu)
      if (setup.cpus[r].has(cpu)) fprintf(json, "%s%d", listed++ ? "," : "", cpu);
    fputc(']', json);
  }
  fputs("]}\n", json);
  fflush(json);
}

void write_point(FILE* json, const Described& described, const Plan& plan, const Point& point) {
  const bool pattern = described.shape != nullptr;
  fprintf(json,
          "{\"kind\":\"point\",\"collective\":\"%s\",\"bytes\":%zu,\"ranks\":%d,\"crowded\":%s,\"mode\":\"%s\",\"calls\":%u",
          described.collective->name, described.bytes, described.ranks, plan.crowded ? "true" : "false",
          mode_names[int(described.mode)], point.calls);
  if (pattern)
    fprintf(json, ",\"shape\":\"%s\",\"spread\":%.4g,\"unit_us\":%.4f,\"waiting_us\":%.4f,\"bound_us\":%.4f", described.shape,
            described.spread, described.unit_us, point.waiting_us, described.bound_us);
  fprintf(json, ",\"floor_us\":%.4f,\"hop_ns\":[%.1f,%.1f],\"wrong\":%zu,\"sides\":{", described.floor_us, point.hop_ns[0],
          point.hop_ns[1], point.wrong);
  for (int i = 0; i < plan.side_count; ++i) {
    fprintf(json, "%s\"%s\":", i ? "," : "", plan.sides[i].name);
    write_side(json, point.side[i], described.ranks, pattern);
  }
  fputs("}}\n", json);
  fflush(json);
}

void write_skipped(FILE* json, const Collective& collective, size_t bytes, const char* why) {
  fprintf(json, "{\"kind\":\"skipped\",\"collective\":\"%s\",\"bytes\":%zu,\"why\":\"%s\"}\n", collective.name, bytes, why);
  fflush(json);
}

}  // namespace stretto::bench
