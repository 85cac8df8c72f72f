// A link that seals the frames of its user with a key of the job. It returns only frames that a member of the
// job has sealed for this process, each of them once, and drops all others. To its user, the network seems to
// lose all forged, damaged and replayed frames.
//
//   frame header | what the frame carries ... | SealTrailer
//
// The header is not encrypted, so kernel filters and receive offload work as without a key. The flag kSealed
// is set. The checksum field contains the id of the sender, because the tag replaces the checksum.
//
// Frames to a multicast group are sealed for the group. Frames from a group do not arrive over this link
// (group_seal.h).
//
// If there is no association for an address, frames to the address wait until the exchange has set one up.
// The link keeps copies of them, at most kWaitingMax for each address. Keep-alives need no association. The
// frames of one send_burst() are sealed together, and sealing adds the same number of bytes to each. So the
// inner link can still send frames of equal size as super-frames.
//
// A queue pair of an RDMA device belongs to the peer that the user names (note_queue_pair()). The association
// for the peer's IP address seals frames to the queue pair. Frames from the queue pair must open with an
// association of that peer. No association is set up over a queue pair, and no frame to a queue pair waits
// for an association.
//
// Invariant: the link returns a frame only if the frame has the flag kSealed and has opened with a new
// counter. In addition, the source of the frame must be one of the addresses of the peer that sealed it. If a
// router has replaced the source, the link puts such an address in its place (translation.h). The answer to a
// keep-alive is an exception. The answer must be sealed with a key of the job, for the address to which this
// side has sent the keep-alive, and the link shows it at this address. The answer may come from another
// source, because a router may have replaced only the source of the answer. It shows that the peer lives,
// whoever has sent it on. The link returns only the first answer to a keep-alive.
#pragma once

#include <array>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/environment.h"
#include "link/link.h"
#include "seal/association.h"
#include "seal/association_exchange.h"
#include "seal/association_table.h"
#include "seal/group_seal.h"
#include "seal/translation.h"

namespace cluster::seal {

class SealedLink final : public link::Link {
 public:
  /// `addresses`: the addresses of this endpoint, its name first.
  SealedLink(std::unique_ptr<link::Link> inner, Credentials credentials, std::vector<SocketAddress> addresses,
             const Environment& environment);

  const char* name() const override { return inner_->name(); }
  std::size_t frame_max() const override;
  bool has_ethertype_path() const override { return inner_->has_ethertype_path(); }
  bool has_carrier() const override { return inner_->has_carrier(); }
  std::size_t send_burst(std::span<const link::OutFrame> frames) override;
  std::size_t seal_overhead() const override { return sizeof(wire::SealTrailer); }
  std::size_t overhead() const override { return sizeof(wire::SealTrailer) + inner_->overhead(); }
  SocketAddress relay_to(const SocketAddress& address) const override { return inner_->relay_to(address); }
  std::size_t receive_burst(std::span<link::InFrame> frames) override;
  std::size_t read_path_errors(std::span<link::PathError> errors) override;
  std::vector<int> descriptors() const override { return inner_->descriptors(); }
  void on_move(const MoveHandler& handler) override {
    inner_->on_move([this, handler](std::uint8_t link, const SocketAddress& now) {
      if (!now.verbs()) readdress(link, now);
      handler(link, now);
    });
  }
  void note_queue_pair(const SocketAddress& queue_pair, const SocketAddress& peer) override {
    queue_pairs_[queue_pair] = peer;
  }
  void before_sleep() override { inner_->before_sleep(); }
  void thin(const link::Thinning& thinning) override {
    exchange_.note_flood(thinning.on);
    inner_->thin(thinning);
  }

 private:
  static constexpr std::size_t kWaitingMax = 8;
  static constexpr Duration kWaitingLongest = 1s;
  /// Enough for two super-frames of ordinary Ethernet frames or one of jumbo frames, and for at least one
  /// frame of every link.
  static constexpr std::size_t kStagingBytes = 128 * 1024;

  Time now() const { return environment_.clock.now(); }
  void readdress(std::uint8_t link, const SocketAddress& now);
  std::size_t send_sealed(std::span<const link::OutFrame> frames, Association& association,
                          ConstBytes block = {});
  std::span<const link::OutFrame> seal(std::span<const link::OutFrame> frames, Association& association,
                                       ConstBytes block);
  GroupSender& group_sender(const SocketAddress& address);
  const SocketAddress& owner_of(const SocketAddress& queue_pair) const;
  void send_keep_alive(const link::OutFrame& frame);
  void send_keep_alive(const link::OutFrame& frame, Route& route, const JobKey& key);
  void wait_for_association(const link::OutFrame& frame);
  void send_waiting(Association& association);
  std::size_t next_genuine(const link::InFrame& arrival, link::InFrame& out);
  /// The sender of a frame.
  struct Sender {
    Association* association = nullptr;
    bool lists_source = true;  ///< false: a router seems to have replaced the source of the frame
    /// If the association is null: the frame answers a keep-alive to this address, but has another source.
    SocketAddress asked{};
  };
  /// Handles one arrived frame. Returns true if the user gets it. `last`: the sender of the previous frame
  /// from the same address. The function updates `last`.
  bool accept(Bytes frame, const wire::FrameHeader& header, const link::Path& from, Sender& last);
  bool accept_from_queue_pair(Bytes frame, const wire::FrameHeader& header, const SocketAddress& from,
                              Sender& last);
  bool open(Bytes frame, const wire::FrameHeader& header, const link::Path& from, const Sender& sender);
  link::Path path_of(const Sender& sender, const link::Path& from) const;
  bool accept_alive(ConstBytes frame, const wire::FrameHeader& header, const link::Path& from,
                    Sender& sender);
  void ask_who_answers(Route& route, const SocketAddress& address, const link::Path& from);

  std::unique_ptr<link::Link> inner_;
  const Credentials credentials_;
  Party ours_;
  Environment environment_;
  AssociationTable table_;
  Translation translation_;
  AssociationExchange exchange_;
  std::unique_ptr<std::byte[]> staging_ = std::make_unique_for_overwrite<std::byte[]>(kStagingBytes);
  /// Sealed frames, which lie in staging_ until the inner link takes them.
  std::array<link::OutFrame, link::kBurstMax> sealed_;
  std::array<link::Path, link::kBurstMax> outward_;  ///< the paths of frames to peers behind a translator
  std::unordered_map<SocketAddress, std::unique_ptr<GroupSender>, SocketAddressHash> groups_;
  std::unordered_map<SocketAddress, SocketAddress, SocketAddressHash>
      queue_pairs_;            ///< the IP address of the peer to which a queue pair belongs
  std::uint64_t keep_alives_;  ///< counter of the last keep-alive
  /// Where the last keep-alives of the user have gone, by counter modulo the size.
  struct Asked {
    std::uint64_t counter = 0;
    SocketAddress address;
  };
  std::array<Asked, 128> asked_;
  std::array<link::InFrame, link::kBurstMax> arrivals_;
  std::size_t arrivals_begin_ = 0;  ///< index of the first arrival that still has frames
  std::size_t arrivals_end_ = 0;
  link::ArrivalWalk walk_;  ///< walks arrivals_[arrivals_begin_]
};

}  // namespace cluster::seal
