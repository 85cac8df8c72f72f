// A relay forwards frames between endpoints of one job that have no common network, or that are behind
// routers which translate their addresses (docs/design/30-relay.md). It reaches both endpoints, for example
// because its node has two interfaces. The frames stay sealed from end to end: a relay has no session, reads
// only headers and tags (wire/relay_frame.h), and has no key that opens a frame.
//
// A relay must not serve strangers, so it forwards only between its *members*. An endpoint becomes a member
// in two round trips. It sends a request, which only a process with the relay key of the job can make. The
// relay answers with a cookie, and stores nothing. The endpoint repeats the cookie. This shows that it
// receives frames at its source. So nobody can make the relay send frames to a host that has not asked for
// them, and a recorded request costs the relay one answer that is no longer than the request.
//
//   danger                                     what prevents it
//   a stranger reaches hosts through a relay   forward(): source and receiver must be members of the same job
//   a flood towards a victim                   join(): the cookie belongs to the source that it was sent to
//   frames that circle between relays          forward(): a frame has one hop
//   a member that starves others               pay(): equal shares of the bandwidth
//   a job that starves others                  Job: each has its share, its members and its answers
//   memory                                     Limits::members
//
// A member may take the name of another member of its job, since the key of a job does not protect its
// processes from each other. The frames that it gets are sealed.
//
// The relay drops what it does not forward, without an answer. The flows of the endpoints notice this as a
// loss. An endpoint whose source has changed joins again.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "base/environment.h"
#include "base/siphash.h"
#include "link/link.h"
#include "relay/relay_key.h"
#include "seal/association.h"
#include "wire/relay_frame.h"

namespace cluster::relay {

struct Limits {
  std::size_t members = 4096;                      ///< of each job
  std::uint64_t bytes_per_second = 1'250'000'000;  ///< of all jobs together
};

/// What a relay has done since it began.
struct Totals {
  std::uint64_t frames = 0;   ///< forwarded
  std::uint64_t bytes = 0;    ///< of these frames, tags included
  std::uint64_t refused = 0;  ///< frames of strangers, and frames to nobody
  std::uint64_t dropped =
      0;  ///< frames of members that had used up their share, or that the link did not take
  bool operator==(const Totals&) const = default;
};

class Relay {
 public:
  /// `jobs`: the keys of each job that the relay serves. Members of different jobs do not reach each other.
  /// `link` must outlive the relay. Nothing else may receive from it.
  Relay(std::vector<JobRelayKeys> jobs, link::Link& link, const Environment& environment,
        const Limits& limits = {});

  /// Handles one burst of arrivals. Returns how many arrivals there were.
  std::size_t poll();

  std::size_t members() const { return members_.size(); }
  const Totals& totals() const { return totals_; }

  /// How long a cookie is valid at least. It is valid at most twice as long.
  static constexpr Duration kCookieInterval = 10s;
  /// The relay forgets a member from which no frame has come for so long.
  static constexpr Duration kSilentMax = 600s;
  /// If a job has too many members, it forgets one that has been silent for so long.
  static constexpr Duration kSilentMin = 60s;

 private:
  static constexpr Duration kSweepInterval = 1s;
  /// How far a member may exceed its share for a short time.
  static constexpr Duration kBurst = 20ms;
  static constexpr Duration kWarningInterval = 60s;

  struct Member {
    std::size_t job = 0;
    SocketAddress name;
    link::Path path;  ///< leads to the source from which the endpoint has joined
    Time heard{};
    Time paid_until{};         ///< the member's share is used up until then
    std::uint64_t wanted = 0;  ///< how many bytes the member has sent since the last sweep
  };
  struct Job {
    std::unordered_map<SocketAddress, std::uint32_t, SocketAddressHash> names;  ///< numbers of its members
    /// How many members have sent much between the last two sweeps: each at least what its share would be if
    /// there were as many active members as a relay can have.
    std::size_t active = 0;
    /// Limits the offers. An attacker can cause one by sending again a request that it has recorded. So joins
    /// have a limit of their own.
    seal::Allowance offers{100us, 1024};
    seal::Allowance joins{100us, 1024};
    Time next_warning{};
  };
  /// A key, and the number of its job.
  struct KnownKey {
    std::shared_ptr<const RelayKey> key;
    std::size_t job = 0;
  };

  void on_message(Time now, ConstBytes frame, const link::Path& from);
  void join(Time now, const KnownKey& known, const wire::RelayMessage& message, const link::Path& from);
  bool make_room(Time now, Job& job);
  std::uint64_t cookie(std::uint64_t interval, const wire::RelayMessage& message,
                       const SocketAddress& source) const;
  bool may_join(Time now, const wire::RelayMessage& message, const SocketAddress& source) const;
  void answer(const RelayKey& key, const wire::RelayMessage& message, const link::Path& to);
  void forward(Time now, Bytes datagram, wire::RelayTag tag, const link::Path& from);
  bool pay(Time now, Member& member, std::size_t bytes);
  void send_burst();
  void sweep(Time now);
  void forget(std::uint32_t number);

  std::vector<KnownKey> keys_;
  link::Link& link_;
  Environment environment_;
  const Limits limits_;
  SipHash cookies_;
  std::unordered_map<std::uint32_t, Member> members_;  ///< by number
  std::vector<Job> jobs_;
  std::array<link::InFrame, link::kBurstMax> arrivals_;
  link::OutBurst burst_;
  std::size_t active_ = 0;  ///< how many jobs have active members
  Time next_sweep_{};
  Totals totals_;
};

}  // namespace cluster::relay
