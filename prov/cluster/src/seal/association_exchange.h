// How associations come about: a request, which a key of the job authenticates, and a response, which the keys
// of the association authenticate.
//
//   A  -- request  {A's salt, A's addresses, number} -->  B     HMAC under the job key's request key
//   A  <-- response {both salts, B's addresses, number} --  B   HMAC under the pair key B to A
//   A  == sealed frames ==>  B                                  the first one shows B that A is alive
//
// A response is as long as its request and answers its number, so it is fresh for A, and B learns nothing from
// a recorded request but a salt. Both name the address that they are sent to, which must be the receiver's: else
// a host on the way could bring the request for one member of the job to another.
//
// There is no timer: the frames that wait for an association are sent again by their flows, and each time a
// request is sent if one is due. A process that has begun anew cannot open what is sealed for the one before; it
// says so by a notice, which draws a request (at most one each kNoticeInterval) and nothing else.
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
  /// All of them outlive the exchange. `ours`: our salt and addresses.
  AssociationExchange(const Credentials& credentials, const Party& ours, AssociationTable& table,
                      link::Link& link, const Environment& environment)
      : credentials_(credentials), ours_(ours), table_(table), link_(link), environment_(environment) {}

  /// Asks for an association with what is at the end of the path, if that is due. False: it is not.
  bool request(Time now, Route& route, const link::Path& path);
  /// A request, response or notice has come, whole. Returns the association that frames may now be sealed in,
  /// if that is new.
  Association* on_frame(Time now, const wire::FrameHeader& header, ConstBytes frame, const link::Path& from);
  /// Whether the bytes begin one of our requests.
  bool has_requested(ConstBytes quoted) const;
  /// A frame has come that no association here opens.
  void on_unknown(Time now, const wire::FrameHeader& header, const link::Path& from);
  /// One that the association does not open: perhaps it is sealed for an earlier process here.
  void on_forged(Time now, Association& association, const wire::FrameHeader& header, const link::Path& from);
  /// Whether there is a flood from now on. Then only peers that this side has sent something to get notices: a frame that the link
  /// lets through for its mark would say so to an unknown source by the notice that it draws (link/thinning.h).
  void note_flood(bool flood) { flood_ = flood; }
  /// From a process without a key, which a notice tells that there is one here.
  void on_unsealed(Time now, const wire::FrameHeader& header, const link::Path& from);

 private:
  static constexpr Duration kRequestIntervalMin = 1ms;
  static constexpr Duration kRequestIntervalMax = 100ms;
  static constexpr Duration kNoticeInterval = 100ms;
  static constexpr Duration kUnknownInterval = 1ms;
  static constexpr Duration kWarningInterval = 60s;
  /// Without an answer the log says what it may be: a peer without the key, or with another, drops requests.
  static constexpr Duration kSilenceMax = 1s;
  /// Requests that are further apart than this belong to two attempts.
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
  void respond(Time now, const Association& association, const AssociationFrame& request,
               const link::Path& to);
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
