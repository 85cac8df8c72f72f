#include "sim/sim_device.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <utility>

#include "sim/allocation_meter.h"
#include "sim/seeded_random.h"

namespace cluster::sim {
namespace {

constexpr std::uint64_t kStreamDevices = 30;
/// Parts in a million of the attempts, while nothing is healed.
constexpr std::uint32_t kOpenFails = 100'000;
constexpr std::uint32_t kCreateFails = 50'000;
constexpr std::uint32_t kMemoryFails = 20'000;
constexpr std::uint32_t kReadRefused = 10'000;
constexpr std::uint32_t kReadFails = 30'000;
constexpr std::uint32_t kReadSilent = 10'000;
constexpr std::uint32_t kReadLies = 30'000;  ///< of devices that are not exact
constexpr std::uint32_t kExact = 500'000;    ///< of devices
constexpr std::uint32_t kGone = 5'000;       ///< of reads: the device disappears
constexpr std::uint8_t kMtuCode = 3;
constexpr std::uint8_t kReadsAtOnce = 4;

}  // namespace

class SimDevices::Device final : public link::ReadDevice {
 public:
  Device(SimDevices& all, HostNumber host)
      : all_(all),
        host_(host),
        random_(SeededRandom::stream(all.seed_, kStreamDevices, all.opened_++)),
        exact_(random_.chance(kExact)) {}
  ~Device() override {
    while (!own_.empty()) destroy(own_.back());
    all_.due_[host_] = kNever;
  }
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  const char* name() const override { return "sim/1"; }
  bool exact() const override { return exact_; }
  std::optional<link::QueuePairEnd> create() override {
    const AllocationMeter::Scope uncounted(nullptr);
    if (gone_ || fails(kCreateFails)) return std::nullopt;
    link::QueuePairEnd end{.number = ++all_.last_number_, .mtu = kMtuCode, .reads = kReadsAtOnce};
    end.gid.back() = static_cast<std::byte>(host_);
    all_.pairs_[end.number] = {};
    own_.push_back(end.number);
    return end;
  }
  bool connect(const link::QueuePairEnd& ours, const link::QueuePairEnd& peer) override {
    if (gone_ || fails(kCreateFails)) return false;
    Pair& pair = all_.pairs_.at(ours.number);
    pair.peer = peer;
    pair.sequence = ours.sequence;
    return true;
  }
  void destroy(std::uint32_t queue_pair) override {
    const AllocationMeter::Scope uncounted(nullptr);
    for (const Begun& each : begun_) {
      if (each.queue_pair == queue_pair) copy(each, random_.below(each.read.into.size()));
    }
    std::erase_if(begun_, [=](const Begun& each) { return each.queue_pair == queue_pair; });
    std::erase_if(all_.memory_, [=](const auto& each) { return each.second.queue_pair == queue_pair; });
    all_.pairs_.erase(queue_pair);
    std::erase(own_, queue_pair);
    note_due();
  }
  std::optional<link::DeviceMemoryKeys> add_memory(std::uint32_t queue_pair, ConstBytes memory,
                                                   link::DeviceUse use) override {
    const AllocationMeter::Scope uncounted(nullptr);
    if (gone_ || fails(kMemoryFails)) return std::nullopt;
    const std::uint32_t key = ++all_.last_key_;
    all_.memory_[key] = {queue_pair, memory, use};
    return link::DeviceMemoryKeys{key, key, key};
  }
  void remove_memory(std::uint32_t handle) override {
    const AllocationMeter::Scope uncounted(nullptr);
    all_.memory_.erase(handle);
  }
  bool read(std::uint32_t queue_pair, const link::DeviceRead& read) override {
    const AllocationMeter::Scope uncounted(nullptr);
    Pair& pair = all_.pairs_.at(queue_pair);
    if (fails(kGone)) gone_ = true;
    if (gone_ || pair.broken || fails(kReadRefused)) {
      pair.broken = true;
      return false;
    }
    pair.silent |= fails(kReadSilent);
    const bool late = random_.chance(100'000);
    const Duration takes = late ? random_.between(50us, 5ms) : random_.between(1us, 50us);
    // The reads of a queue pair end in order.
    Time ends = all_.event_queue_.now() + takes;
    for (const Begun& each : begun_) {
      if (each.queue_pair == queue_pair) ends = std::max(ends, each.ends);
    }
    begun_.push_back({queue_pair, read, ends, fails(kReadFails), !exact_ && fails(kReadLies)});
    note_due();
    return true;
  }
  std::size_t poll(std::span<link::DeviceReadEnd> ends) override {
    const AllocationMeter::Scope uncounted(nullptr);
    std::size_t filled = 0;
    for (auto each = begun_.begin(); each != begun_.end() && filled < ends.size();) {
      Pair& pair = all_.pairs_.at(each->queue_pair);
      if (gone_ || pair.silent || each->ends > all_.event_queue_.now()) {
        ++each;
        continue;
      }
      const bool lies = each->lies && !pair.broken;
      const bool whole = !pair.broken && !each->fails && !lies && copy(*each, each->read.into.size());
      if (!whole && !pair.broken) copy(*each, random_.below(each->read.into.size()));
      const bool good = whole || lies;
      pair.broken |= !whole;
      ends[filled++] = {each->queue_pair, good};
      each = begun_.erase(each);
    }
    note_due();
    return filled;
  }
  bool works() override { return !gone_; }
  bool exists() override { return !gone_; }
  int descriptor() const override { return -1; }
  bool arm() override { return true; }

 private:
  struct Begun {
    std::uint32_t queue_pair = 0;
    link::DeviceRead read;
    Time ends{};
    bool fails = false;
    bool lies = false;  ///< it is reported as done, but breaks the queue pair
  };

  bool fails(std::uint32_t share) { return random_.chance(share) && !all_.healed_; }
  void note_due() {
    Time next = kNever;
    for (const Begun& each : begun_) {
      if (!gone_ && !all_.pairs_.at(each.queue_pair).silent) next = std::min(next, each.ends);
    }
    all_.due_[host_] = next;
  }
  /// Copies the first `size` bytes of a read, if both sides permit it.
  bool copy(const Begun& begun, std::size_t size) {
    const Pair& pair = all_.pairs_.at(begun.queue_pair);
    const auto other = all_.pairs_.find(pair.peer.number);
    if (other == all_.pairs_.end() || other->second.peer.number != begun.queue_pair ||
        other->second.sequence != pair.peer.sequence)
      return false;
    const ConstBytes from{reinterpret_cast<const std::byte*>(begun.read.address), begun.read.into.size()};
    if (!permits(begun.read.local_key, begun.queue_pair, begun.read.into, link::DeviceUse::written_here) ||
        !permits(begun.read.remote_key, pair.peer.number, from, link::DeviceUse::read_by_peer))
      return false;
    std::memcpy(begun.read.into.data(), from.data(), size);
    return true;
  }
  bool permits(std::uint32_t key, std::uint32_t queue_pair, ConstBytes bytes, link::DeviceUse use) const {
    const auto found = all_.memory_.find(key);
    if (found == all_.memory_.end() || found->second.queue_pair != queue_pair || found->second.use != use)
      return false;
    const ConstBytes known = found->second.bytes;
    return bytes.data() >= known.data() && bytes.data() + bytes.size() <= known.data() + known.size();
  }

  SimDevices& all_;
  HostNumber host_;
  SeededRandom random_;
  bool exact_;
  std::vector<std::uint32_t> own_;
  std::deque<Begun> begun_;
  bool gone_ = false;
};

link::OpenReadDevice SimDevices::opener(HostNumber host) {
  return [this, host](std::string& reason) -> std::unique_ptr<link::ReadDevice> {
    const AllocationMeter::Scope uncounted(nullptr);
    auto device = std::make_unique<Device>(*this, host);
    SeededRandom random = SeededRandom::stream(seed_, kStreamDevices, std::uint64_t{opened_} << 32);
    if (healed_ || !random.chance(kOpenFails)) return device;
    reason = "the simulator says so";
    return nullptr;
  };
}

}  // namespace cluster::sim
