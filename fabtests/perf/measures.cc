#include "measures.h"

#include <algorithm>
#include <stdexcept>

namespace perf {
namespace {

constexpr std::size_t kColdBytes = std::size_t{256} << 20;  ///< more than any cache
constexpr std::size_t kPage = 4096;

enum class Needs { tagged, rma, atomic };

struct Measure {
  const char* name;
  Needs needs;
  const char* explanation;
};

constexpr Measure kMeasures[] = {
    {"latency", Needs::tagged, "one-way time of a tagged message, half of a round trip"},
    {"wake", Needs::tagged,
     "the same, each side idle for a while before it sends: with --wait block the other sleeps"},
    {"bandwidth", Needs::tagged, "WINDOW messages, then one answer; bytes per second"},
    {"rate", Needs::tagged, "the same, in messages per second"},
    {"bidirectional", Needs::tagged, "WINDOW messages each way at once; bytes per second of both together"},
    {"pairs", Needs::tagged, "messages per second over WINDOW pairs of endpoints, 16 on each at a time"},
    {"overlap", Needs::tagged, "percent of a transfer that the sender's computation hides"},
    {"put", Needs::rma, "WINDOW remote writes until the target sees them all; bytes per second"},
    {"put_rate", Needs::rma, "the same, in operations per second"},
    {"put_latency", Needs::rma, "one-way time until the target sees the last byte"},
    {"get", Needs::rma, "WINDOW remote reads under way; bytes per second"},
    {"get_latency", Needs::rma, "time of one remote read"},
    {"put_shared", Needs::rma,
     "WINDOW remote writes from one place to another; not in one run with put: both are shared mappings"},
    {"put_shared_rate", Needs::rma, "the same, in operations per second"},
    {"put_shared_latency", Needs::rma, "put_latency in such memory"},
    {"get_shared", Needs::rma, "WINDOW remote reads of one place in such memory"},
    {"fetch_add", Needs::atomic, "WINDOW 8-byte atomic additions under way; operations per second"},
    {"fetch_add_latency", Needs::atomic, "time of one 8-byte atomic addition that returns the old value"},
};

const Measure& measure_of(const Item& item) {
  for (const Measure& measure : kMeasures) {
    if (item.measure == measure.name) return measure;
  }
  throw std::invalid_argument("there is no measure '" + item.measure + "'");
}

bool in_shared_memory(const Item& item) { return item.measure.find("_shared") != std::string::npos; }

}  // namespace

unsigned places_of(const Item& item) {
  return measure_of(item).needs == Needs::rma && !in_shared_memory(item) ? item.window : 1;
}

void ask_for(const std::vector<Item>& plan, bool cold, Request& request) {
  std::size_t memory = cold ? kColdBytes : kPage;
  bool in_private = false;
  for (const Item& item : plan) {
    const Measure& measure = measure_of(item);
    request.rma |= measure.needs == Needs::rma;
    if (measure.needs == Needs::rma) (in_shared_memory(item) ? request.shared : in_private) = true;
    request.atomic |= measure.needs == Needs::atomic;
    if (item.measure == "pairs") request.pairs = std::max(request.pairs, item.window);
    const std::size_t places = places_of(item);
    const std::size_t bytes = std::max<std::size_t>(item.bytes, sizeof(std::uint64_t));
    if (bytes * places > kBytesMax)
      throw std::invalid_argument("'" + item.text() + "' needs too much memory");
    memory = std::max(memory, bytes * places);
  }
  if (request.shared && in_private)
    throw std::invalid_argument("a run has one kind of memory, private or shared");
  request.memory = (memory + kPage - 1) / kPage * kPage;
}

std::string describe_measures() {
  std::string text = "measures, as MEASURE:BYTES[:WINDOW], bytes also as 4k or 1m:\n";
  for (const Measure& measure : kMeasures) {
    std::string name = measure.name;
    name.resize(20, ' ');
    text += "  " + name + measure.explanation + "\n";
  }
  return text;
}

Benchmark work_for(Endpoints& side, const Item& item, bool cold) {
  return measure_of(item).needs == Needs::tagged ? tagged_work(side, item, cold) : remote_work(side, item);
}

Places::Places(const Memory& memory, std::size_t bytes, bool cold)
    : data_(memory.data()),
      bytes_(std::max<std::size_t>(bytes, 1)),
      count_(cold ? std::max<std::size_t>(1, memory.size() / bytes_) : 1) {}

}  // namespace perf
