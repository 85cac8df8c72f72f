// One process's end of a rail of the simulated network: a link its engine is given. Dies with the process;
// what arrives afterwards is lost.
#pragma once

#include <memory>
#include <vector>

#include "base/ring_queue.h"
#include "link/link.h"
#include "sim/oracle.h"
#include "sim/session_peers.h"
#include "sim/sim_network.h"

namespace cluster::sim {

class SimLink final : public link::Link {
 public:
  SimLink(SimNetwork& network, Oracle& oracle, SessionPeers& session_peers, HostNumber host, RailNumber rail,
          std::uint32_t incarnation, std::size_t frame_max, bool ethertype);
  ~SimLink() override;

  const char* name() const override { return "simulated"; }
  std::size_t frame_max() const override { return frame_max_; }
  bool has_ethertype_path() const override { return ethertype_; }
  std::size_t send_burst(std::span<const link::OutFrame> frames) override;
  std::size_t receive_burst(std::span<link::InFrame> frames) override;
  std::size_t read_path_errors(std::span<link::PathError> path_errors) override;

  /// From the network; leaves the packet with the caller if the ring is full.
  void arrive(std::unique_ptr<Packet>& packet);
  void add_path_error(const link::PathError& path_error);
  bool has_frames() const { return !ring_.empty(); }
  /// The process is being killed: nothing it does on its way out reaches the network.
  void disconnect() { disconnected_ = true; }

 private:
  void look_at_opening(const link::OutFrame& frame);
  bool continues_last(const Packet& packet) const;

  SimNetwork& network_;
  Oracle& oracle_;
  SessionPeers& session_peers_;
  HostNumber host_;
  RailNumber rail_;
  std::uint32_t incarnation_;
  std::size_t frame_max_;
  bool ethertype_;
  RingQueue<std::unique_ptr<Packet>> ring_;
  std::vector<std::unique_ptr<Packet>> in_use_;  ///< the engine looks at these until its next call
  std::size_t last_size_ = 0;  ///< of the frames in the last one of those; 0: damaged
  Time last_arrived_{};
  RingQueue<link::PathError> path_errors_;
  bool disconnected_ = false;
};

}  // namespace cluster::sim
