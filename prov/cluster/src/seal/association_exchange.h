// How two endpoints make an association: by a request, which a key of the job authenticates, and a response, which the keys of the
// association authenticate.
//
//   A  -- request  {A's salt, A's addresses, number} -->  B     HMAC under the job key's request key
//   A  <-- response {both salts, B's addresses, number} --  B   HMAC under the pair key B to A
//   A  == sealed frames ==>  B                                  the first one shows B that A is alive
//
// A response is as long as its request and repeats its number, so A knows that it is fresh. From a recorded request B learns only a
// salt. Both messages name the address that they are sent to, which must be the receiver's. Otherwise a host on the way could lead the
// request for one member of the job to another.
//
// There is no timer. Flows retransmit the frames that wait for an association, and each time the exchange sends a request if one is
// due. A process that has restarted cannot open what is sealed for the one before it. It says so by a notice, which draws a request
// (at most one per kNoticeInterval) and nothing else.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "base/environment.h"
#include "link/link.h"
#include "seal/association_frame.h"
#include "seal/association_table.h"

namespace cluster::seal {

class AssociationExchange {
 public:
  /// All arguments outlive the exchange. `ours`: our salt and addresses.
  AssociationExchange(const Credentials& credentials, const Party& ours, AssociationTable& table,
                      link::Link& link, const Environment& environment)
      : credentials_(credentials), ours_(ours), table_(table), link_(link), environment_(environment) {}

  /// Asks the endpoint at the end of the path for an association, if a request is due. False: it is not.
  bool request(Time now, Route& route, const link::Path& path);
  /// A whole request, response or notice has come. Returns the association if frames may from now on be sealed in it.
  Association* on_frame(Time now, const wire::FrameHeader& header, ConstBytes frame, const link::Path& from);
  /// True if the bytes are the beginning of one of our requests.
  bool has_requested(ConstBytes quoted) const;
  /// A frame has come for which there is no association here.
  void on_unknown(Time now, const wire::FrameHeader& header, const link::Path& from);
  /// A frame has come that the association does not open: perhaps it is sealed for an earlier process here.
  void on_forged(Time now, Association& association, const wire::FrameHeader& header, const link::Path& from);
  /// Whether there is a flood from now on. During a flood only peers to which this side has sent something get notices. Otherwise an
  /// unknown source would learn from a notice that the link let its frame through, that is, that it guessed the mark (link/link.h).
  void note_flood(bool flood) { flood_ = flood; }
  /// A frame has come from a process without a key; a notice tells it that there is a key here.
  void on_unsealed(Time now, const wire::FrameHeader& header, const link::Path& from);

 private:
  static constexpr Duration kRequestIntervalMin = 1ms;
  static constexpr Duration kRequestIntervalMax = 100ms;
  static constexpr Duration kNoticeInterval = 100ms;
  static constexpr Duration kUnknownInterval = 1ms;
  static constexpr Duration kWarningInterval = 60s;
  /// After so long without an answer the log says why that may be: a peer without the key, or with another one, drops requests.
  static constexpr Duration kSilenceMax = 1s;
  /// Requests further apart than this belong to two attempts.
  static constexpr Duration kAttemptGap = 10s;
  /// Responses cost some microseconds each, and a recorded request draws one.
  static constexpr int kResponsesAtOnce = 1024;
  static constexpr Duration kResponseInterval = 250us;

  enum class Warning : std::uint8_t { other_key, other_mode, no_key, silence, count };

  bool is_ours(const SocketAddress& address) const;
  const std::shared_ptr<const JobKey>* key_of(const KeyId& id) const;
  Association* on_request(Time now, const AssociationFrame& frame, ConstBytes bytes, const link::Path& from);
  Association* on_response(const AssociationFrame& frame, ConstBytes bytes, const link::Path& from);
  void on_other_key(Time now, const SocketAddress& peer);
  void on_notice(Time now, const wire::FrameHeader& header, const link::Path& from);
  void notify(Time now, const wire::FrameHeader& refused, const link::Path& to);
  void respond(const Association& association, const AssociationFrame& request, const link::Path& to);
  bool response_allowed(Time now);
  void send_request(const JobKey& key, const link::Path& path);
  void send(ConstBytes bytes, const link::Path& to);
  void warn(Time now, Warning about, const SocketAddress& peer);

  const Credentials& credentials_;
  const Party& ours_;
  AssociationTable& table_;
  link::Link& link_;
  Environment environment_;
  std::uint64_t numbers_ = 0;
  Time next_unknown_{};
  bool flood_ = false;
  struct OtherKey {
    SocketAddress peer;
    Time since{};
  };
  OtherKey other_key_;     ///< the peer that has asked with a key that is not this process's
  Time responses_from_{};  ///< each response takes kResponseInterval of the time since then
  std::array<Time, static_cast<std::size_t>(Warning::count)> next_warning_{};
};

}  // namespace cluster::seal
