#include "sim/group_scale.h"

#include <array>
#include <memory>
#include <vector>

#include "sim/allocation_meter.h"
#include "sim/failure.h"
#include "sim/group_host.h"

namespace cluster::sim {
namespace {

constexpr std::uint64_t kSeed = 1;
constexpr Time kMet{1s};  ///< all members know each other by then
constexpr Time kPatience{60s};
constexpr std::uint32_t kLoss = kMillion / 100;

SocketAddress name_of(std::size_t host) {
  const std::array<std::byte, 4> ip{std::byte{10}, std::byte{1}, static_cast<std::byte>(host >> 8),
                                    static_cast<std::byte>(host)};
  return SocketAddress::v4(ip.data(), 5000);
}

}  // namespace

Measured measure_group(std::uint32_t hosts, std::size_t size) {
  EventQueue events;
  GroupFaults faults;
  faults.loss = kLoss;
  faults.pipe_max = hosts;
  GroupNetwork network(events, faults, kSeed);
  GroupOracle oracle;
  AllocationMeter memory;  // counts the memory of the sender
  std::vector<std::unique_ptr<GroupHost>> members;
  for (std::size_t host = 0; host < hosts; ++host) {
    GroupHostSettings settings{
        .name = name_of(host), .membership = static_cast<Membership>(host + 1), .role = {.sends = host == 0}};
    for (std::size_t other = 0; other < hosts; ++other) {
      if (other != host) settings.roster.push_back(name_of(other));
    }
    settings.judged = false;  // checks of a thousand members would take too long
    if (host == 0) settings.memory = &memory;
    const AllocationMeter::Scope scope(settings.memory);
    members.push_back(std::make_unique<GroupHost>(settings, events, network, oracle, kSeed));
    network.attach(settings.name, *members.back(), false);
  }
  while (!events.empty() && events.next() < kMet) events.step();
  GroupHost& sender = *members.front();
  const Time begin = events.now();
  const std::uint64_t frames = network.frames();
  Measured measured;
  sender.post(size, group::Until::delivered);
  while (!events.empty() && !sender.drained()) {
    if (events.next() > kPatience) throw LivenessFailure("a message to a group is not over");
    events.step();
  }
  oracle.check_complete();
  measured.duration = events.now() - begin;
  measured.bytes = size;
  measured.frames = network.frames() - frames;
  measured.retransmitted = measured.frames - sender.cut();
  measured.bytes_per_peer = memory.peak() / (hosts - 1);
  return measured;
}

}  // namespace cluster::sim
