// The network of a simulated group. Multicast loses, duplicates, delays and damages frames. From each host
// to each other one, a pipe of segments stands for a flow: it loses and duplicates nothing, but a segment
// that is late may be overtaken.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <unordered_map>
#include <vector>

#include "carrier/carrier.h"
#include "link/link.h"
#include "sim/event_queue.h"
#include "sim/seeded_random.h"

namespace cluster::sim {

struct GroupFaults {
  std::uint32_t loss = 0;  ///< of a million frames, at each receiver
  std::uint32_t duplicate = 0;
  std::uint32_t corrupt = 0;
  std::uint32_t delayed = 0;  ///< frames are delayed by up to `delay_max`, so others overtake them
  std::uint32_t late_segment = 0;
  std::uint32_t link_full = 0;  ///< the link takes only half of a burst
  Duration delay_max = 2ms;
  std::size_t pipe_max = 64;  ///< how many segments may be under way in one pipe
};

/// A host as the network sees it. What arrives after detach() is lost.
class GroupPort {
 public:
  virtual ~GroupPort() = default;
  virtual void frame_arrived(const SocketAddress& from, const std::vector<std::byte>& bytes) = 0;
  virtual void segment_arrived(const SocketAddress& from, const std::vector<std::byte>& bytes) = 0;
};

/// Sees all frames that are sent by multicast.
class GroupTap {
 public:
  virtual ~GroupTap() = default;
  virtual void see(const SocketAddress& from, const std::vector<std::byte>& bytes) = 0;
};

class GroupNetwork final : public EventHandler {
 public:
  GroupNetwork(EventQueue& events, const GroupFaults& faults, std::uint64_t seed);
  ~GroupNetwork() override;

  /// `deaf`: multicast does not reach the host.
  void attach(const SocketAddress& name, GroupPort& port, bool deaf) { hosts_[name] = {&port, deaf}; }
  void detach(const SocketAddress& name) { hosts_.erase(name); }
  void set_tap(GroupTap* tap) { tap_ = tap; }
  /// Delivers a frame that no member has sent, in the name of `from`.
  void inject(const SocketAddress& from, const SocketAddress& to, std::vector<std::byte> bytes,
              Duration delay) {
    plan(delay, {from, to, std::move(bytes), nullptr});
  }
  /// Ends all faults: after this call, no frame is lost, delayed or damaged.
  void heal() { faults_ = {}; }

  std::size_t multicast(const SocketAddress& from, std::span<const link::OutFrame> frames);
  /// Returns the pipe from one host to another. It lasts as long as the network.
  carrier::Carrier& pipe(const SocketAddress& from, const SocketAddress& to);
  void handle_event(std::uint64_t note) override;
  std::uint64_t frames() const { return frames_; }

 private:
  class Pipe;
  struct Host {
    GroupPort* port = nullptr;
    bool deaf = false;
  };
  struct Packet {
    SocketAddress from;
    SocketAddress to;
    std::vector<std::byte> bytes;
    Pipe* pipe = nullptr;  ///< null for a multicast frame
  };

  void plan(Duration delay, Packet packet);

  EventQueue& events_;
  GroupFaults faults_;
  SeededRandom random_;
  std::unordered_map<SocketAddress, Host, SocketAddressHash> hosts_;
  std::unordered_map<SocketAddress,
                     std::unordered_map<SocketAddress, std::unique_ptr<Pipe>, SocketAddressHash>,
                     SocketAddressHash>
      pipes_;
  std::unordered_map<std::uint64_t, Packet> under_way_;
  GroupTap* tap_ = nullptr;
  std::uint64_t next_ = 0;
  std::uint64_t frames_ = 0;
};

}  // namespace cluster::sim
