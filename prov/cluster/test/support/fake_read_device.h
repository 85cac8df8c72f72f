// Devices that read each other's memory, as far as a test permits. Reads end late, and one at a time. A
// device is as strict as hardware: it uses memory only with its key, for the queue pair that it was added
// for, and only while both queue pairs are connected with each other.
#pragma once

#include <algorithm>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "link/read_device.h"

namespace cluster::test {

/// What happens to devices, and what they have done.
struct FakeDeviceFabric {
  static constexpr std::size_t kNever = ~std::size_t{0};

  std::size_t fails_at =
      kNever;  ///< the number of the read that breaks its queue pair after half of its bytes
  std::size_t lies_at = kNever;     ///< the number of the read that fails so, too, but is reported as done
  std::size_t refused_at = kNever;  ///< the number of the read that the device does not take
  bool silent = false;              ///< no read ends
  bool exact = true;
  std::byte subnet{77};  ///< a device reaches only the devices of its own fabric
  bool opens = true;
  bool creates = true;
  bool connects = true;
  bool takes_written = true;  ///< memory that it writes to
  bool takes_read = true;     ///< memory that the peer reads
  bool gone = false;

  std::size_t opened = 0;
  std::size_t created = 0;
  std::size_t reads = 0;
  std::size_t most_at_once = 0;  ///< reads of one queue pair
  std::size_t misuses = 0;       ///< uses of memory that a device does not permit

  struct Memory {
    std::uint32_t queue_pair = 0;
    ConstBytes bytes;
    link::DeviceUse use{};
  };
  struct Pair {
    std::uint32_t sequence = 0;
    link::QueuePairEnd peer;
    bool broken = false;   ///< its reads fail
    bool refuses = false;  ///< it takes no reads
  };
  std::map<std::uint32_t, Memory> memory = {};
  std::map<std::uint32_t, Pair> pairs = {};
  std::uint32_t last_number = 100;
  std::uint32_t last_key = 7000;

  /// Returns true if a device still knows any of these bytes.
  bool knows(ConstBytes bytes) const {
    return std::ranges::any_of(memory, [&](const auto& each) {
      const ConstBytes known = each.second.bytes;
      return known.data() < bytes.data() + bytes.size() && bytes.data() < known.data() + known.size();
    });
  }
};

class FakeReadDevice final : public link::ReadDevice {
 public:
  explicit FakeReadDevice(FakeDeviceFabric& fabric) : fabric_(fabric) { ++fabric.opened; }
  ~FakeReadDevice() override {
    while (!own_.empty()) destroy(own_.front());
  }

  static link::OpenReadDevice opener(FakeDeviceFabric& fabric) {
    return [&fabric](std::string& reason) -> std::unique_ptr<link::ReadDevice> {
      if (fabric.opens && !fabric.gone) return std::make_unique<FakeReadDevice>(fabric);
      reason = "a test says so";
      return nullptr;
    };
  }

  const char* name() const override { return "fake/1"; }
  bool exact() const override { return fabric_.exact; }
  std::optional<link::QueuePairEnd> create() override {
    if (!fabric_.creates || fabric_.gone) return std::nullopt;
    ++fabric_.created;
    link::QueuePairEnd end{.number = ++fabric_.last_number, .mtu = 3, .reads = 4};
    end.gid[15] = fabric_.subnet;
    fabric_.pairs[end.number] = {};
    own_.push_back(end.number);
    return end;
  }
  bool reaches(const link::QueuePairEnd& peer) const override { return peer.gid[15] == fabric_.subnet; }
  bool connect(const link::QueuePairEnd& ours, const link::QueuePairEnd& peer) override {
    if (!fabric_.connects || !reaches(peer)) return false;
    FakeDeviceFabric::Pair& pair = fabric_.pairs.at(ours.number);
    pair.sequence = ours.sequence;
    pair.peer = peer;
    return true;
  }
  void destroy(std::uint32_t queue_pair) override {
    fabric_.pairs.erase(queue_pair);
    std::erase(own_, queue_pair);
    std::erase_if(fabric_.memory, [=](const auto& each) { return each.second.queue_pair == queue_pair; });
    std::erase_if(begun_, [=](const Begun& each) { return each.queue_pair == queue_pair; });
  }
  std::optional<link::DeviceMemoryKeys> add_memory(std::uint32_t queue_pair, ConstBytes memory,
                                                   link::DeviceUse use) override {
    if (!(use == link::DeviceUse::read_by_peer ? fabric_.takes_read : fabric_.takes_written))
      return std::nullopt;
    const std::uint32_t key = ++fabric_.last_key;
    fabric_.memory[key] = {queue_pair, memory, use};
    return link::DeviceMemoryKeys{key, key, key};
  }
  void remove_memory(std::uint32_t handle) override { fabric_.memory.erase(handle); }
  std::string keeps_nothing_because() const override { return "it is a fake"; }
  std::string refused_memory_because() const override {
    return fabric_.takes_read && fabric_.takes_written ? "" : "a test says so";
  }
  bool read(std::uint32_t queue_pair, const link::DeviceRead& read) override {
    if (fabric_.gone || fabric_.pairs.at(queue_pair).refuses) return false;
    const std::size_t number = fabric_.reads++;
    const auto of_it = [=](const Begun& each) { return each.queue_pair == queue_pair; };
    fabric_.misuses += std::ranges::count_if(begun_, of_it) >= static_cast<std::ptrdiff_t>(kReadsMax);
    if (number == fabric_.refused_at) {
      fabric_.pairs.at(queue_pair).refuses = true;
      return false;
    }
    begun_.push_back({queue_pair, read, number == fabric_.fails_at || number == fabric_.lies_at,
                      number == fabric_.lies_at});
    const auto at_once = std::ranges::count_if(begun_, of_it);
    fabric_.most_at_once = std::max(fabric_.most_at_once, static_cast<std::size_t>(at_once));
    return true;
  }
  std::size_t poll(std::span<link::DeviceReadEnd> ends) override {
    if (begun_.empty() || fabric_.silent || fabric_.gone || ++polls_ % 3 != 0) return 0;
    const Begun begun = begun_.front();
    begun_.pop_front();
    FakeDeviceFabric::Pair& pair = fabric_.pairs.at(begun.queue_pair);
    const bool lies = begun.lies && !pair.broken;
    const bool good = !pair.broken && perform(begun, pair);
    pair.broken |= !good;
    ends[0] = {begun.queue_pair, good || lies};
    return 1;
  }
  bool works() override { return !fabric_.gone; }
  bool exists() override { return !fabric_.gone; }
  int descriptor() const override { return -1; }
  bool arm() override { return true; }

 private:
  struct Begun {
    std::uint32_t queue_pair = 0;
    link::DeviceRead read;
    bool fails = false;
    bool lies = false;
  };

  bool perform(const Begun& begun, const FakeDeviceFabric::Pair& pair) {
    const ConstBytes from{reinterpret_cast<const std::byte*>(begun.read.address), begun.read.into.size()};
    const auto other = fabric_.pairs.find(pair.peer.number);
    const bool connected = other != fabric_.pairs.end() && other->second.peer.number == begun.queue_pair &&
                           other->second.sequence == pair.peer.sequence;
    if (!connected) return false;
    if (!permits(begun.read.local_key, begun.queue_pair, begun.read.into, link::DeviceUse::written_here) ||
        !permits(begun.read.remote_key, pair.peer.number, from, link::DeviceUse::read_by_peer))
      return false;
    std::memcpy(begun.read.into.data(), from.data(), begun.fails ? from.size() / 2 : from.size());
    return !begun.fails;
  }
  bool permits(std::uint32_t key, std::uint32_t queue_pair, ConstBytes bytes, link::DeviceUse use) const {
    const auto found = fabric_.memory.find(key);
    if (found == fabric_.memory.end()) return false;
    const FakeDeviceFabric::Memory& known = found->second;
    return known.queue_pair == queue_pair && known.use == use && bytes.data() >= known.bytes.data() &&
           bytes.data() + bytes.size() <= known.bytes.data() + known.bytes.size();
  }

  FakeDeviceFabric& fabric_;
  std::vector<std::uint32_t> own_;
  std::deque<Begun> begun_;
  unsigned polls_ = 0;
};

}  // namespace cluster::test
