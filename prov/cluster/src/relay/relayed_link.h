// A link that also reaches peers through relays. It lies below the seal (seal/sealed_link.h), and its user
// does not notice which way a frame takes: each peer has the same address on all ways. To the user, a relay
// is as invisible as an IP router.
//
//   engine | seal | RelayedLink | link --- direct -------------------------> peer
//                                     \--- frame and RelayTag --> relay ----/
//
// The link becomes a member of each relay when it is opened (membership.h). It chooses the way to each
// address for itself (ways.h). The direct way is used if it works. If it does not, the frames go through the
// nearest relay at which the peer is a member, too. A peer is a member by its name only, so its further
// addresses are reached directly or not at all.
//
// A stranger chooses where some frames go: answers to association requests, which the stranger may have
// recorded, notices, and the questions of the seal at a source that is new. These frames take the way that is
// known. They cause no keep-alive, and the link remembers nothing of them. Otherwise a stranger could make
// the link send many frames to a victim, and fill the table of peers.
//
// Keep-alives decide which way works. They are sealed with the key of the job. No other arriving frame
// replaces a way that works, because a host on the path could have sent that frame. Frames that arrive
// through a relay are handed on with the name of their sender as their source. The seal finds out whether
// they are genuine. Such a path counts as translated (link::Path::translated): the kernel at the peer's
// address may be that of another host.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "base/environment.h"
#include "link/link.h"
#include "relay/membership.h"
#include "relay/ways.h"
#include "seal/job_key.h"

namespace cluster::relay {

inline constexpr Duration kRejoinAfter = 5s;

/// What a RelayedLink has to know beside the link below it.
struct RelayedSetup {
  seal::Credentials credentials;
  SocketAddress name;      ///< of the endpoint
  std::uint8_t links = 1;  ///< how many links the link below combines
  std::vector<SocketAddress> relays;
  /// If this link is polled, the endpoint joins each relay again after this time. So a router on the way
  /// remembers it, and so does a relay that has begun anew. 0: only when the endpoint needs the relay.
  Duration rejoin_after{0};
};

class RelayedLink final : public link::Link {
 public:
  RelayedLink(std::unique_ptr<link::Link> inner, RelayedSetup setup, const Environment& environment);

  const char* name() const override { return inner_->name(); }
  std::size_t frame_max() const override { return inner_->frame_max() - sizeof(wire::RelayTag); }
  std::size_t overhead() const override { return sizeof(wire::RelayTag); }
  bool limits_all_paths() const override { return inner_->limits_all_paths(); }
  bool has_ethertype_path() const override { return inner_->has_ethertype_path(); }
  bool has_carrier() const override { return inner_->has_carrier(); }
  std::size_t send_burst(std::span<const link::OutFrame> frames) override;
  SocketAddress relay_to(const SocketAddress& address) const override;
  std::size_t receive_burst(std::span<link::InFrame> frames) override;
  std::size_t read_path_errors(std::span<link::PathError> errors) override;
  std::vector<int> descriptors() const override { return inner_->descriptors(); }
  void before_sleep() override { inner_->before_sleep(); }
  void on_move(const MoveHandler& handler) override;
  void thin(const link::Thinning& thinning) override {
    mark_ = thinning.on ? thinning.mark : 0;
    inner_->thin(thinning);
  }

 private:
  /// A membership is not asked for again and again while nobody needs it.
  static constexpr unsigned kAsksUnneeded = 10;
  /// The link looks after a peer for so long after the last frame to it.
  static constexpr Duration kTendedFor = 1s;
  /// Beyond this number of peers, the link forgets those to which it has sent nothing for kIdleAfter. If it
  /// still has too many, it reaches further peers directly only.
  static constexpr std::size_t kPeersMax = 16'384;
  /// A relay may name many senders. Beyond this number of peers, the link does not remember further ones of
  /// which it has only heard.
  static constexpr std::size_t kHeardMax = kPeersMax / 2;
  static constexpr Duration kForgetInterval = 1s;
  static constexpr Duration kIdleAfter = 60s;
  /// How many calls of receive_burst() may pass without a look at the clock while nothing is awaited.
  static constexpr unsigned kPollsPerClock = 64;
  /// After this many vain rounds, the user hears of errors that say that a peer cannot be reached.
  static constexpr unsigned kRoundsTolerated = 3;

  struct Peer {
    Peer(const SocketAddress& its_address, std::size_t relays) : address(its_address), ways(relays) {}
    SocketAddress address;
    Ways ways;
    link::Path direct;    ///< the path of the last frame to the peer
    Time sent_at{};       ///< 0: the link has only heard of the peer
    bool tended = false;  ///< is in tended_
  };

  Peer* find_peer(const SocketAddress& address) const;
  Peer* peer_at(Time now, const SocketAddress& address, std::size_t peers_max);
  void forget_idle_peers(Time now);
  void before_sending(Time now, Peer& peer, const link::Path& path);
  void begin_round(Time now, Peer& peer);
  void ask(Time now, Peer& peer, std::size_t way);
  std::size_t send_tagged(std::span<const link::OutFrame> frames, const SocketAddress& peer,
                          const Membership& by);
  void join(Time now, Membership& membership);
  void tend(Time now);
  void tend_members(Time now);
  bool is_special(const link::InFrame& arrival) const;
  void note_direct_request(const link::InFrame& arrival);
  std::size_t next_of(const link::InFrame& arrival, link::InFrame& out);
  std::size_t next_relayed(const link::InFrame& arrival, std::size_t way, link::InFrame& out);
  /// Returns true if the frame answers a question of this link.
  bool take_answer(ConstBytes frame, const SocketAddress& peer, std::size_t way);
  void report_way(const Peer& peer);
  /// Returns the way through the relay at this address, or Ways::kDirect if no relay is there.
  std::size_t way_of(const SocketAddress& source) const;

  std::unique_ptr<link::Link> inner_;
  const seal::Credentials credentials_;
  const JobRelayKeys keys_;
  SocketAddress name_;
  const std::uint8_t links_;
  const Duration rejoin_after_;
  Environment environment_;
  std::vector<Membership> memberships_;  ///< way i leads through the relay of membership i - 1
  std::unordered_map<SocketAddress, std::unique_ptr<Peer>, SocketAddressHash> peers_;
  std::vector<Peer*> tended_;  ///< peers whose way in use has not answered yet
  Time next_forget_{};
  std::uint64_t keep_alives_;  ///< counter of the last question
  std::uint32_t mark_ = 0;     ///< during a flood, the kernel lets answers with this session pass
  bool all_joined_ = false;
  unsigned polls_ = 0;
  std::array<link::OutFrame, link::kBurstMax> tagged_;
  std::array<link::InFrame, link::kBurstMax> arrivals_;
  std::size_t arrivals_begin_ = 0;
  std::size_t arrivals_end_ = 0;
  link::ArrivalWalk walk_;  ///< walks arrivals_[arrivals_begin_]
};

}  // namespace cluster::relay
