// The link of one process to one rail of the simulated network. It passes packets on, and knows which packet
// contained the bytes that it hands out. It ends with the process. Packets that arrive later are lost.
//
// The link may be the queue pair of an RDMA device, as in os/verbs_link.h. The device may be removed, and
// come back with another queue pair. Meanwhile the link drops all frames.
#pragma once

#include <memory>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/ring_queue.h"
#include "link/link.h"
#include "sim/sim_network.h"
#include "sim/thinner.h"

namespace cluster::sim {

class SimLink final : public link::Link {
 public:
  SimLink(SimNetwork& network, HostNumber host, RailNumber rail, std::uint32_t incarnation,
          std::size_t frame_max, bool ethertype);
  ~SimLink() override;

  const char* name() const override { return "simulated"; }
  std::size_t frame_max() const override { return frame_max_; }
  bool limits_all_paths() const override { return !of_device_; }
  bool has_ethertype_path() const override { return ethertype_; }
  bool has_carrier() const override {
    const Port& port = network_.port(host_, rail_);
    return !port.down && port.carrier;
  }
  void thin(const link::Thinning& thinning) override {
    if (!of_device_) thinner_.set(thinning);
  }
  void on_move(const MoveHandler& handler) override { moved_ = handler; }
  /// The host is a relay: the frames that it sends lie in packets that it has read.
  void forward_packets() { forwards_ = true; }
  /// The host has another address on this rail now.
  void note_move() { has_moved_ = true; }
  /// The RDMA device was removed. `noticed`: the link reports that its paths have failed.
  void lose_device(bool noticed);
  std::size_t send_burst(std::span<const link::OutFrame> frames) override;
  std::size_t receive_burst(std::span<link::InFrame> frames) override;
  std::size_t read_path_errors(std::span<link::PathError> path_errors) override;

  Thinner::Place place_of(const Packet& packet) { return thinner_.place_of(network_.now(), packet); }
  /// A packet arrives from the network. If there is no space for it, the caller keeps it.
  void arrive(std::unique_ptr<Packet>& packet, Thinner::Place place);
  void add_path_error(const link::PathError& path_error);
  bool has_frames() const { return !ring_.empty() || (of_device_ && has_moved_); }
  /// Returns the packet, without its bytes, that contained the byte at `at`. Returns null if no packet of
  /// the last receive_burst() did.
  const Packet* origin_of(const std::byte* at) const;
  /// Returns true if an undamaged frame of an endpoint begins within these bytes.
  bool holds_genuine(ConstBytes bytes) const;
  /// The process is being killed. Nothing that it still sends reaches the network.
  void disconnect() { disconnected_ = true; }

 private:
  /// Where a packet that was handed out lies in the buffers.
  struct Origin {
    std::size_t buffer = 0;  ///< index in in_use_
    std::size_t begin = 0;
    bool whole = false;
    Packet packet;  ///< without bytes
  };

  /// What this host's receive offload does; this differs from incarnation to incarnation. joins(): it joins
  /// frames. tells_segments(): it also says where the joined frames end, and joins whatever looks alike,
  /// even damaged or forged frames. An offload that does not say where frames end joins only undamaged
  /// frames of hosts here. If it joined others, the genuine frames behind them would be lost, too.
  /// The queue pair of a device joins nothing.
  bool joins() const { return !of_device_ && (host_ + incarnation_) % 2 == 0; }
  bool tells_segments() const { return !of_device_ && (host_ + incarnation_) % 4 == 0; }
  bool continues_last(const Packet& packet) const;
  void join_last(std::unique_ptr<Packet> packet, bool whole, link::InFrame& frame);
  void note_origin(const Packet& packet, std::size_t begin, bool whole);
  std::unique_ptr<Packet> take_next();

  SimNetwork& network_;
  HostNumber host_;
  RailNumber rail_;
  std::uint32_t incarnation_;
  std::size_t frame_max_;
  bool ethertype_;
  bool of_device_;
  std::unordered_set<SocketAddress, SocketAddressHash> reached_;  ///< queue pairs that frames were sent to
  RingQueue<std::unique_ptr<Packet>> ring_;
  Thinner thinner_;
  std::vector<std::unique_ptr<Packet>> in_use_;  ///< the engine reads these until its next call
  std::vector<Origin> origins_;                  ///< where packets lie in these, in order
  std::size_t last_size_ = 0;  ///< length of the frames in the last of these; 0: none may be joined to it
  Time last_arrived_{};
  RingQueue<link::PathError> path_errors_;
  bool disconnected_ = false;
  bool forwards_ = false;
  MoveHandler moved_;
  bool has_moved_ = false;
};

}  // namespace cluster::sim
