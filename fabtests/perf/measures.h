// The measures over libfabric: their names, what each needs, and what both sides do in one round. measurement.h decides
// how often, and computes the figures.
#pragma once

#include "endpoints.h"
#include "measurement.h"

namespace perf {

/// Adds to `request` what the items of a plan need: capabilities, endpoints, memory.
/// Throws std::invalid_argument if there is no such measure.
void ask_for(const std::vector<Item>& plan, bool cold, Request& request);
/// Names and one-line explanations of all measures.
std::string describe_measures();
Benchmark work_for(Endpoints& side, const Item& item, bool cold);

// The families of measures; each returns an empty work for names of others.
Benchmark tagged_work(Endpoints& side, const Item& item, bool cold);
Benchmark remote_work(Endpoints& side, const Item& item);
/// How many buffers of its length an item has on each side.
unsigned places_of(const Item& item);

/// Where message `serial` lies: always in the same place, as most programs reuse their buffers, or, for
/// cold buffers, each time in the next one of the whole memory.
class Places {
 public:
  Places(const Memory& memory, std::size_t bytes, bool cold);
  char* at(std::uint64_t serial) const { return data_ + (serial % count_) * bytes_; }

 private:
  char* data_;
  std::size_t bytes_;
  std::uint64_t count_;
};

}  // namespace perf
