// The transport over an RDMA device. It reaches no peer by itself. It assists the network: if a peer that the
// network reaches has a device, too, the device of the receiver reads long messages out of the memory of the
// sender (carrier/device_reads.h). It reads long remote writes and reads in the same way. First contact,
// order, acknowledgements and the death of peers stay with the network, so a broken device costs time and no
// message.
//
// The first long message from a peer travels in frames, and makes the receiver offer a queue pair. The two
// sides connect their queue pairs by segments of the kind queue_pair, which either side may send first:
//
//   none       -- this side has long bytes to read --> offered (sends its queue pair)
//   none       -- the peer's queue pair arrives --> connected (sends its queue pair)
//   offered    -- the peer's queue pair arrives --> connected
//   any        -- an error, or the peer has closed its queue pair --> none; the next offer has to wait
//
// An endpoint may have several devices. Queue pairs are connected only within a subnet. So the side that gets
// an offer looks for a device of its own that reaches the offered queue pair. If there is none, it answers
// that it has no queue pair, and the next offer is that of another device. One device at a time reads the
// bytes of a peer. If this device fails, another one takes its place.
//
// A queue pair that fails is destroyed before the receives that used it pull the rest of their messages in
// frames. Therefore the device never writes to a buffer that the application has got back. The device does
// not read a message after its completion either: conceal() takes the memory away from the device first.
//
// Some devices report reads that have failed as done (link::ReadDevice::exact). If the receiver has such a
// device, it asks the sender for a checksum of each message. The receiver compares the checksum after the
// last piece, and trusts no byte before this comparison.
//
// Only members (PeerTable::is_member) get a queue pair, because an endpoint has few queue pairs.
//
// The device is opened for the first long message, and given back if it fails or is removed. A later message
// opens it again.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "carrier/device_reads.h"
#include "link/read_device.h"
#include "transport/transport.h"
#include "transport/transport_context.h"

namespace cluster::verbs {

using transport::Peer;

class VerbsTransport;
class ReaderConnection;

/// A device of this side, and its queue pairs.
struct ReaderDevice {
  link::OpenReadDevice open;
  std::unique_ptr<link::ReadDevice> device;                          ///< null while the device is not open
  std::unordered_map<std::uint32_t, ReaderConnection*> connections;  ///< by the number of the queue pair
  Time open_at{};                                                    ///< when the device may be opened again
  Time ask_at{};
  bool said_keeps_nothing = false;
  bool said_refuses_memory = false;
};

/// The queue pair for one peer.
class ReaderConnection final : public transport::TransportPeer, public carrier::DeviceReads {
 public:
  ReaderConnection(VerbsTransport& owner, Peer& peer) : owner_(owner), peer_(peer) {}
  ~ReaderConnection() override;
  ReaderConnection(const ReaderConnection&) = delete;
  ReaderConnection& operator=(const ReaderConnection&) = delete;

  bool ready() override;
  bool read(std::uint32_t id, const carrier::ExposedMemory& from, Bytes into) override;
  void abandon(std::uint32_t id) override;
  bool expose(std::uint32_t id, ConstBytes bytes, carrier::ExposedMemory& exposed) override;
  void conceal(std::uint32_t id) override;
  void on_queue_pair(const wire::Segment& segment) override;

  /// Returns true if the device reads for this peer.
  bool reading() const { return !reads_.empty(); }
  /// Returns true if nobody would miss the queue pair now.
  bool idle() const { return reads_.empty() && exposed_.empty(); }
  bool open() const { return ours_.number != 0; }
  Time used_at() const { return used_at_; }
  /// Returns when the peer's device counts as lost, unless a piece arrives earlier.
  Time deadline() const { return reading() ? heard_at_ + kSilenceMax : kNever; }
  /// Called when the oldest piece on its way has ended.
  void piece_over(bool succeeded);
  /// Ends the queue pair. The receives that use it pull what they lack. `why`: for the log, or null.
  void break_off(const char* why, bool tell_peer);

 private:
  struct Read {
    std::uint32_t id = 0;
    std::uint32_t memory = 0;  ///< handle of the registration
    link::DeviceRead whole;
    std::optional<std::uint32_t> checksum;  ///< of the message, if the device is not exact
    std::size_t asked = 0;
    std::size_t done = 0;
  };

  /// What the device is asked for at once.
  struct Pace {
    std::size_t piece;   ///< bytes
    std::size_t pieces;  ///< on their way
  };
  static constexpr Pace kPace{std::size_t{1} << 20, link::ReadDevice::kReadsMax};
  /// The kernel drops packets of soft-RoCE beyond 1000 in a queue, so one answer must be much shorter.
  static constexpr Pace kSoftPace{std::size_t{128} << 10, 2};
  /// The peer's device answers even while the peer's process is stopped, so silence means that this device is
  /// gone. This side's device gives up after about half a second, and usually reports that. This limit is for
  /// devices that report nothing.
  static constexpr Duration kSilenceMax = 900ms;
  static constexpr Duration kOfferAgain = 3s;  ///< the time after a failure before the next offer

  bool create(ReaderDevice& device);
  bool offer();
  bool have_queue_pair_for(const link::QueuePairEnd& peer, bool answers);
  bool connect(const link::QueuePairEnd& peer, bool needs_checksums);
  void give_up_queue_pair();
  void send_ours();
  void send_closed(std::uint32_t theirs);
  void send(const wire::Segment& segment);
  const Pace& pace() const;
  void ask_for_pieces();
  void read_over();
  /// Returns true if the queue pair has refused a piece, and no other piece is on its way.
  bool stuck() const { return !reads_.empty() && in_flight_ == 0; }

  VerbsTransport& owner_;
  Peer& peer_;
  ReaderDevice* device_ = nullptr;  ///< the device of the queue pair, or null if there is none
  std::size_t offered_ = 0;         ///< index of the device that the next offer tries first
  link::QueuePairEnd ours_;
  std::uint32_t theirs_ = 0;      ///< the peer's queue pair, or 0 while not connected
  bool needs_checksums_ = false;  ///< the peer's device is not exact
  Time offer_at_{};
  Time used_at_{};
  Time heard_at_{};
  std::deque<Read> reads_;                                    ///< in the order in which they end
  std::size_t in_flight_ = 0;                                 ///< pieces
  std::unordered_map<std::uint32_t, std::uint32_t> exposed_;  ///< handle of the registration, by message
};

class VerbsTransport final : public transport::Transport, private transport::WakeSource {
 public:
  /// The largest number of queue pairs. Of the idle ones, the one that was used least recently is closed if a
  /// further peer needs its place.
  static constexpr std::size_t kQueuePairsMax = 256;

  /// `devices`: opens each of the devices, the best first.
  VerbsTransport(const transport::TransportContext& context, std::vector<link::OpenReadDevice> devices,
                 std::size_t queue_pairs_max = kQueuePairsMax);
  ~VerbsTransport() override;

  const char* name() const override { return "verbs"; }
  bool reaches_others() const override { return false; }
  /// Adds no reason, because users do not expect that this transport reaches a peer.
  transport::OpenResult open(Peer&, std::string&) override { return transport::OpenResult::unreached; }
  bool look_for(Peer&) override { return false; }
  void assist(Peer& peer) override;
  void close(Peer& peer) override;
  void report_devices(std::vector<transport::DeviceStats>& stats) const override;
  bool holds(const Peer& peer) const override;

  bool receive(transport::Turn& turn) override;
  void transmit(transport::Turn& turn) override;
  bool may_be_skipped() const override { return reading_ == 0; }
  bool prepare_sleep() override;
  Time deadline() const override;

 private:
  friend class ReaderConnection;

  /// How often the transport reads the events of a device: a port that is down is left before a read has to
  /// fail.
  static constexpr Duration kReviewInterval = 100ms;
  /// How often the transport asks whether the device still exists. The kernel may delay the removal of a
  /// device until no process has the device open.
  static constexpr Duration kDeviceInterval = 5s;
  static constexpr Duration kOpenAgain = 3s;  ///< the time after a failure before the device is opened again

  void on_ready(bool trouble) override;
  Time now() const { return context_.environment.clock.now(); }
  bool have(ReaderDevice& device);
  void give_back(ReaderDevice& device, const char* why);
  void review(ReaderDevice& device, Time now);
  /// The next review asks the device.
  void suspect(ReaderDevice& device) { device.ask_at = review_at_ = Time{}; }
  void note_refused_memory(ReaderDevice& device) const;
  bool have_place();
  static bool add(ReaderDevice& device, ReaderConnection& connection, std::uint32_t queue_pair);
  static void remove(ReaderDevice& device, std::uint32_t queue_pair);
  /// Calls visit(connection) for each queue pair.
  template <typename Visit>
  void each_connection(Visit&& visit) const {
    for (const ReaderDevice& device : devices_) {
      for (const auto& [number, each] : device.connections) visit(*each);
    }
  }

  const transport::TransportContext& context_;
  std::vector<ReaderDevice> devices_;  ///< their number does not change
  std::size_t queue_pairs_max_;
  std::size_t reading_ = 0;  ///< reads in progress
  Time review_at_{};
};

}  // namespace cluster::verbs
