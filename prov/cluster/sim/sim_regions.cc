#include "sim/sim_regions.h"

#include <cstring>

namespace cluster::sim {
namespace {

constexpr std::uint64_t kStreamRegions = 10;
/// Shares in a million: of the runs, of the pairs of hosts in these runs, and of the accesses.
constexpr std::uint32_t kRuns = 500'000;
constexpr std::uint32_t kPairs = 600'000;
constexpr std::uint32_t kLeftToTarget = 100'000;

using protocol::Access;
using protocol::RmaIov;

}  // namespace

class SimRegions::Reached final : public shm::LocalMemory {
 public:
  Reached(const SimRegions& all, HostNumber host, std::uint32_t number, SeededRandom random)
      : all_(all), host_(host), number_(number), random_(random) {}

  Outcome write(std::uint64_t key, std::uint64_t address, const Gather& source) override {
    return access({address, key, source.length}, Access::write, [&](std::byte* target, std::size_t length) {
      Gather{source.slices, source.offset, length}.copy_to(target);
    });
  }
  /// Called only if segments can be taken back, which no simulated carrier allows.
  Outcome judge_write(std::uint64_t, std::uint64_t, std::size_t) override { return Outcome::unsuited; }
  Outcome read(std::uint64_t key, std::uint64_t address, std::span<const Bytes> slices, std::size_t offset,
               std::size_t length) override {
    return access({address, key, length}, Access::read, [&](const std::byte* source, std::size_t part) {
      scatter(slices, offset, {source, part});
    });
  }

 private:
  template <typename Copy>
  Outcome access(const RmaIov& range, Access kind, Copy&& copy) {
    const Process& process = all_.processes_[host_];
    if (process.regions == nullptr || process.number != number_) return Outcome::unsuited;
    const bool leave = random_.chance(kLeftToTarget);
    const std::size_t part = kind == Access::read ? range.length / 2 : 0;
    const std::size_t length = leave ? part : range.length;
    const bool allowed = process.regions->with(
        range, kind, [&](std::byte* bytes, const protocol::MemoryRegion&) { copy(bytes, length); });
    if (leave) return Outcome::unsuited;
    return allowed ? Outcome::done : Outcome::denied;
  }

  const SimRegions& all_;
  HostNumber host_;
  std::uint32_t number_;
  SeededRandom random_;
};

class SimRegions::Connector final : public shm::RegionConnector {
 public:
  Connector(const SimRegions& all, HostNumber from) : all_(all), from_(from) {}

  std::unique_ptr<shm::LocalMemory> connect(const SocketAddress& peer) override {
    const HostNumber to = host_of(peer);
    if (to >= all_.processes_.size()) return nullptr;
    SeededRandom run = SeededRandom::stream(all_.seed_, kStreamRegions);
    SeededRandom pair =
        SeededRandom::stream(all_.seed_, kStreamRegions, std::uint64_t{from_ + 1u} << 32 | to);
    const Process& process = all_.processes_[to];
    if (!run.chance(kRuns) || !pair.chance(kPairs) || process.regions == nullptr) return nullptr;
    return std::make_unique<Reached>(all_, to, process.number, pair);
  }

 private:
  const SimRegions& all_;
  HostNumber from_;
};

void SimRegions::set(HostNumber host, protocol::RegionTable* regions) {
  Process& process = processes_[host];
  process.regions = regions;
  if (regions != nullptr) ++process.number;
}

std::unique_ptr<shm::RegionConnector> SimRegions::connector(HostNumber from) {
  return std::make_unique<Connector>(*this, from);
}

}  // namespace cluster::sim
