// RDMA devices of hosts (link/read_device.h), whose reads end late, and which fail: queue pairs that break at
// any piece, devices that fall silent, disappear and come back, memory that they refuse. The cables of the
// network do not matter to them: they have a network of their own. The queue pairs that carry frames are
// rails of the network (sim_network.h), and are removed at other times (faults.h).
//
// Half of the devices are not exact, like soft-RoCE: they report some reads that have failed as done.
//
// A device writes to memory at any time until it is told to forget it, and never afterwards. So it writes a
// part of what it reads when a read fails or a queue pair is destroyed. If the library gives a buffer back to
// its application too early, or a region is closed too early, the oracle sees that the memory changes. The
// part is never the whole: once the oracle sees all bytes of an unreported write, it regards the write as
// over, and a write in frames that follows would be a second execution.
#pragma once

#include <map>
#include <vector>

#include "link/read_device.h"
#include "sim/event_queue.h"
#include "sim/sim_network.h"

namespace cluster::sim {

/// All devices of a run.
class SimDevices {
 public:
  SimDevices(EventQueue& event_queue, std::uint64_t seed, std::uint32_t hosts)
      : event_queue_(event_queue), seed_(seed), due_(hosts, kNever) {}

  /// Returns the function that opens the device of the host.
  link::OpenReadDevice opener(HostNumber host);
  /// Returns when the next read of the host ends.
  Time due(HostNumber host) const { return due_[host]; }
  /// From now on nothing fails any more.
  void heal() { healed_ = true; }

 private:
  class Device;
  struct Memory {
    std::uint32_t queue_pair = 0;
    ConstBytes bytes;
    link::DeviceUse use{};
  };
  struct Pair {
    link::QueuePairEnd peer;
    std::uint32_t sequence = 0;
    bool broken = false;
    bool silent = false;
  };

  EventQueue& event_queue_;
  std::uint64_t seed_;
  bool healed_ = false;
  std::uint32_t opened_ = 0;
  std::uint32_t last_number_ = 0;
  std::uint32_t last_key_ = 0;
  std::map<std::uint32_t, Memory> memory_;  ///< by key
  std::map<std::uint32_t, Pair> pairs_;     ///< by number
  std::vector<Time> due_;                   ///< by host
};

}  // namespace cluster::sim
