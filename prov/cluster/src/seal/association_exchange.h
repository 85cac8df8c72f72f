// How two endpoints set up an association. One endpoint sends a request, authenticated with a key of the job.
// The other sends a response, authenticated with a key of the association.
//
//   A  -- request  {A's salt, A's addresses, number} -->  B     HMAC under the job key's request key
//   A  <-- response {both salts, B's addresses, number} --  B   HMAC under the pair key B to A
//   A  == sealed frames ==>  B                                  the first one shows B that A is alive
//
// A response is about as long as its request. It repeats the request's number, so A knows that the response
// is fresh. A recorded request does no harm, because B learns only a salt from it. Each message contains its
// destination address, and the receiver checks that this address is its own. Otherwise a host on the path
// could redirect a request to another process of the job.
//
// On the wire, a request or response is
//
//   frame header | AssociationBlock | RailBlocks of its sender, the name first | SealTrailer
//
// The trailer's counter is the number of the request. The trailer's tag is the HMAC over everything before
// it. A notice (association_unknown) is only a header. It contains the id of the refused frame, and the
// receiver trusts nothing in it.
//
// A request may come from a source that its sender does not list, because a router translates addresses. Such
// a request makes an association that is not confirmed, and causes a response to the source. It changes
// nothing else (translation.h).
//
// There is no timer. Flows retransmit the frames that wait for an association. At each retransmission the
// exchange sends another request, unless the last one left a short time ago. A restarted process cannot open
// frames that were sealed for its predecessor. It answers these frames with a notice. The only effect of a
// notice is that its receiver sends a request, at most one per kNoticeInterval.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/environment.h"
#include "link/link.h"
#include "seal/association_table.h"
#include "seal/translation.h"
#include "wire/frame.h"
#include "wire/opening.h"

namespace cluster::seal {

/// The wire format of the block in requests and responses.
struct AssociationBlock {
  std::uint8_t key_id[8];
  std::uint8_t salt[16];       ///< salt of the sender
  std::uint8_t peer_salt[16];  ///< in a response, the salt of the requester; in a request, 0
  std::uint8_t mode;
  std::uint8_t prefers_aes;  ///< 1 if AES-GCM is the faster cipher at the sender
  std::uint8_t addresses;    ///< number of RailBlocks that follow
  std::uint8_t reserved;
  wire::RailBlock to;  ///< the destination address of this message
};
static_assert(sizeof(AssociationBlock) == 64);

/// A decoded request or response.
struct AssociationFrame {
  wire::FrameKind kind = wire::FrameKind::association_request;
  KeyId key_id{};
  Mode mode = Mode::auth;
  Party sender;
  Salt peer_salt{};
  SocketAddress to;
  std::uint64_t number = 0;
};

/// Encodes the whole frame except its tag, which set_tag() adds.
std::vector<std::byte> encode(const AssociationFrame& frame);
/// Returns the part of a frame that the tag covers.
inline ConstBytes tagged_part(ConstBytes frame) {
  return frame.first(frame.size() - sizeof(wire::SealTrailer::tag));
}
inline void set_tag(std::vector<std::byte>& frame, const Tag& tag) {
  std::memcpy(frame.data() + tagged_part(frame).size(), tag.data(), tag.size());
}

/// Creates a notice. It tells the sender of the refused frame that the frame does not open here, and that the
/// sender should request an association.
wire::FrameHeader make_notice(const wire::FrameHeader& refused);

class AssociationExchange {
 public:
  /// All arguments must outlive the exchange. `ours` contains our salt and our addresses.
  AssociationExchange(const Credentials& credentials, const Party& ours, AssociationTable& table,
                      Translation& translation, link::Link& link, const Environment& environment)
      : credentials_(credentials),
        ours_(ours),
        table_(table),
        translation_(translation),
        link_(link),
        environment_(environment) {}

  /// Sends a request to the endpoint at the end of the path, which leads to an address that the endpoint
  /// lists. Returns false, and sends nothing, if the last request left a short time ago.
  bool request(Time now, Route& route, const link::Path& path);
  /// Handles a whole request, response or notice. If the association of the frame has become current, returns
  /// it, so that waiting frames can leave. Otherwise returns null.
  Association* on_frame(Time now, const wire::FrameHeader& header, ConstBytes frame, const link::Path& from);
  /// Returns true if the bytes are the beginning of one of our requests.
  bool has_requested(ConstBytes quoted) const;
  /// Handles a frame that belongs to no association of this side.
  void on_unknown(Time now, const wire::FrameHeader& header, const link::Path& from);
  /// Handles a frame that the association does not open. The frame may have been sealed for an earlier
  /// process with our address.
  void on_forged(Time now, Association& association, const wire::FrameHeader& header, const link::Path& from);
  /// Notes that a flood begins or ends. During a flood, this side sends notices only to addresses to which it
  /// has a route (AssociationTable::find_route). A notice to another source would tell the source that its
  /// frame has passed the link, and therefore contained the right mark (link/link.h).
  void note_flood(bool flood) { flood_ = flood; }
  /// Handles a frame that is not sealed. A notice tells the sender of the frame that this process has a key.
  void on_unsealed(Time now, const wire::FrameHeader& header, const link::Path& from);

 private:
  static constexpr Duration kRequestIntervalMin = 1ms;
  static constexpr Duration kRequestIntervalMax = 100ms;
  static constexpr Duration kNoticeInterval = 100ms;
  static constexpr Duration kUnknownInterval = 1ms;
  static constexpr Duration kWarningInterval = 60s;
  /// If no answer has arrived for this time, this side logs a warning with the possible reasons. One reason
  /// is that the peer has no key or another key, and drops the requests.
  static constexpr Duration kSilenceMax = 1s;
  /// If two requests are further apart than this, they belong to different attempts.
  static constexpr Duration kAttemptGap = 10s;

  enum class Warning : std::uint8_t { other_key, other_mode, no_key, silence, taken_address, count };

  bool is_ours(const SocketAddress& address) const;
  const std::shared_ptr<const JobKey>* key_of(const KeyId& id) const;
  Association* on_request(Time now, const AssociationFrame& frame, ConstBytes bytes, const link::Path& from);
  bool may_come_from(Time now, const Association& association, const link::Path& source);
  SocketAddress asked_for(const AssociationFrame& response, const SocketAddress& source);
  Association* on_response(const AssociationFrame& frame, ConstBytes bytes, const link::Path& from);
  void on_other_key(Time now, const SocketAddress& peer);
  void on_notice(Time now, const wire::FrameHeader& header, const link::Path& from);
  void notify(Time now, const wire::FrameHeader& refused, const link::Path& to);
  void send_notice(const wire::FrameHeader& refused, const link::Path& to);
  void respond(const Association& association, const AssociationFrame& request, const link::Path& to);
  void send_request(const JobKey& key, const link::Path& path);
  void send(ConstBytes bytes, const link::Path& to);
  void warn(Time now, Warning about, const SocketAddress& peer);

  const Credentials& credentials_;
  const Party& ours_;
  AssociationTable& table_;
  Translation& translation_;
  link::Link& link_;
  Environment environment_;
  std::uint64_t numbers_ = 0;
  Time next_unknown_{};
  bool flood_ = false;
  struct OtherKey {
    SocketAddress peer;
    Time since{};
  };
  OtherKey other_key_;  ///< the last peer whose request used a key that this process does not have
  /// Limits the responses. Each response costs this side some microseconds. An attacker can cause a response
  /// by sending again a request that it has recorded.
  Allowance responses_{250us, 1024};
  std::array<Time, static_cast<std::size_t>(Warning::count)> next_warning_{};
};

}  // namespace cluster::seal
