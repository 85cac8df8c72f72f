// The link of a simulated engine. It shows the oracle every frame that the engine sends and reads. If the
// host has a key, this link stands above the seal and sees opened frames. It then also checks that no frame
// of a host without the key passes the seal, and that no sealed frame passes twice.
//
// The engine must read a frame of the wrong peer (session_peers.h) alone in a turn. Meanwhile other arrivals
// wait in this link.
#pragma once

#include <array>
#include <memory>
#include <unordered_set>
#include <vector>

#include "sim/oracle.h"
#include "sim/session_peers.h"
#include "sim/sim_link.h"

namespace cluster::sim {

class ObservedLink final : public link::Link {
 public:
  /// `wires`: the links at the lower end of `inner`, which owns them.
  ObservedLink(std::unique_ptr<link::Link> inner, const std::vector<SimLink*>& wires,
               const SimNetwork& network, Oracle& oracle, SessionPeers& session_peers, HostNumber host);

  const char* name() const override { return inner_->name(); }
  std::size_t frame_max() const override { return inner_->frame_max(); }
  bool has_ethertype_path() const override { return inner_->has_ethertype_path(); }
  bool has_carrier() const override { return inner_->has_carrier(); }
  std::size_t seal_overhead() const override { return inner_->seal_overhead(); }
  std::size_t overhead() const override { return inner_->overhead(); }
  void on_move(const MoveHandler& handler) override { inner_->on_move(handler); }
  std::size_t send_burst(std::span<const link::OutFrame> frames) override;
  std::size_t receive_burst(std::span<link::InFrame> frames) override;
  void note_queue_pair(const SocketAddress& queue_pair, const SocketAddress& peer) override {
    inner_->note_queue_pair(queue_pair, peer);
  }
  void thin(const link::Thinning& thinning) override { inner_->thin(thinning); }
  std::size_t read_path_errors(std::span<link::PathError> errors) override {
    return inner_->read_path_errors(errors);
  }

  /// Returns true if frames that have left the wires wait in this link.
  bool has_frames() const { return held_begin_ < held_end_; }
  /// The process is being killed. The oracle no longer sees what its engine sends.
  void disconnect() { disconnected_ = true; }

 private:
  void show_sent(const link::OutFrame& frame);
  std::size_t show_read(const link::InFrame& arrival);
  void check_refused(ConstBytes bytes, const link::InFrame& arrival) const;
  const Packet* origin_of(const std::byte* at) const;
  void judge(const Packet& packet);

  std::unique_ptr<link::Link> inner_;
  const std::vector<SimLink*>& wires_;
  const SimNetwork& network_;
  Oracle& oracle_;
  SessionPeers& session_peers_;
  HostNumber host_;
  std::array<link::InFrame, link::kBurstMax> held_;
  std::size_t held_begin_ = 0;
  std::size_t held_end_ = 0;
  std::unordered_set<std::uint64_t> opened_;  ///< numbers of sealed frames that were read
  bool disconnected_ = false;
};

}  // namespace cluster::sim
