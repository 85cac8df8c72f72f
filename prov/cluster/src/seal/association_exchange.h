// How two endpoints make an association. One sends a request, which a key of the job authenticates. The other
// sends a response, which the keys of the association authenticate.
//
//   A  -- request  {A's salt, A's addresses, number} -->  B     HMAC under the job key's request key
//   A  <-- response {both salts, B's addresses, number} --  B   HMAC under the pair key B to A
//   A  == sealed frames ==>  B                                  the first one shows B that A is alive
//
// A response is as long as its request and repeats the request's number, so A knows that the response is
// fresh. A recorded request teaches B nothing but a salt. Each message names the address that it is sent to,
// and the receiver checks that the address is its own. Otherwise a host on the way could lead the request for
// one process of the job to another.
//
// On the wire, a request or response is
//
//   frame header | AssociationBlock | RailBlocks of its sender, the name first | SealTrailer
//
// The trailer's counter is the number of the request. The trailer's tag is the HMAC over everything before. A
// notice (association_unknown) is a header alone. It quotes the refused frame, and nothing in it is trusted.
//
// There is no timer. Flows retransmit the frames that wait for an association, and each time the exchange
// sends a request if one is due. A restarted process cannot open frames that were sealed for its predecessor.
// It answers them with a notice, which causes a request (at most one per kNoticeInterval) and nothing else.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/environment.h"
#include "link/link.h"
#include "seal/association_table.h"
#include "wire/frame.h"
#include "wire/opening.h"

namespace cluster::seal {

/// The wire format of the block.
struct AssociationBlock {
  std::uint8_t key_id[8];
  std::uint8_t salt[16];       ///< of the sender
  std::uint8_t peer_salt[16];  ///< in a response, that of the requester; in a request, 0
  std::uint8_t mode;
  std::uint8_t prefers_aes;  ///< 1: AES-GCM is the faster cipher at the sender
  std::uint8_t addresses;    ///< number of RailBlocks that follow
  std::uint8_t reserved;
  wire::RailBlock to;  ///< the address that this message is sent to
};
static_assert(sizeof(AssociationBlock) == 64);

/// A request or response in host terms.
struct AssociationFrame {
  wire::FrameKind kind = wire::FrameKind::association_request;
  KeyId key_id{};
  Mode mode = Mode::auth;
  Party sender;
  Salt peer_salt{};
  SocketAddress to;
  std::uint64_t number = 0;
};

/// Encodes the whole frame, except the tag at its end.
std::vector<std::byte> encode(const AssociationFrame& frame);
/// Returns the part of a frame that the tag covers.
inline ConstBytes tagged_part(ConstBytes frame) {
  return frame.first(frame.size() - sizeof(wire::SealTrailer::tag));
}
inline void set_tag(std::vector<std::byte>& frame, const Tag& tag) {
  std::memcpy(frame.data() + tagged_part(frame).size(), tag.data(), tag.size());
}

/// Makes a notice: "The frame with this header does not open here, ask for an association."
wire::FrameHeader make_notice(const wire::FrameHeader& refused);

class AssociationExchange {
 public:
  /// All arguments outlive the exchange. `ours` holds our salt and addresses.
  AssociationExchange(const Credentials& credentials, const Party& ours, AssociationTable& table,
                      link::Link& link, const Environment& environment)
      : credentials_(credentials), ours_(ours), table_(table), link_(link), environment_(environment) {}

  /// Asks the endpoint at the end of the path for an association. Returns false if no request is due yet.
  bool request(Time now, Route& route, const link::Path& path);
  /// Handles a whole request, response or notice. Returns the association if frames may now be sealed in it,
  /// else null.
  Association* on_frame(Time now, const wire::FrameHeader& header, ConstBytes frame, const link::Path& from);
  /// True if the bytes are the beginning of one of our requests.
  bool has_requested(ConstBytes quoted) const;
  /// Handles a frame for which there is no association here.
  void on_unknown(Time now, const wire::FrameHeader& header, const link::Path& from);
  /// Handles a frame that the association does not open; perhaps it was sealed for an earlier process here.
  void on_forged(Time now, Association& association, const wire::FrameHeader& header, const link::Path& from);
  /// Says whether there is a flood from now on. During a flood, only peers that this side has sent something
  /// to get notices. Otherwise a notice would tell an unknown source that the link let its frame through,
  /// that is, that it guessed the mark (link/link.h).
  void note_flood(bool flood) { flood_ = flood; }
  /// Handles a frame from a process without a key; a notice tells the process that there is a key here.
  void on_unsealed(Time now, const wire::FrameHeader& header, const link::Path& from);

 private:
  static constexpr Duration kRequestIntervalMin = 1ms;
  static constexpr Duration kRequestIntervalMax = 100ms;
  static constexpr Duration kNoticeInterval = 100ms;
  static constexpr Duration kUnknownInterval = 1ms;
  static constexpr Duration kWarningInterval = 60s;
  /// After this time without an answer, the log names possible reasons: a peer without the key, or with
  /// another one, drops requests.
  static constexpr Duration kSilenceMax = 1s;
  /// Requests further apart than this belong to two attempts.
  static constexpr Duration kAttemptGap = 10s;

  enum class Warning : std::uint8_t { other_key, other_mode, no_key, silence, count };

  bool is_ours(const SocketAddress& address) const;
  const std::shared_ptr<const JobKey>* key_of(const KeyId& id) const;
  Association* on_request(Time now, const AssociationFrame& frame, ConstBytes bytes, const link::Path& from);
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
  link::Link& link_;
  Environment environment_;
  std::uint64_t numbers_ = 0;
  Time next_unknown_{};
  bool flood_ = false;
  struct OtherKey {
    SocketAddress peer;
    Time since{};
  };
  OtherKey other_key_;  ///< the peer that has asked with a key that this process does not have
  /// Limits responses: each costs some microseconds, and even a recorded request causes one.
  Allowance responses_{250us, 1024};
  std::array<Time, static_cast<std::size_t>(Warning::count)> next_warning_{};
};

}  // namespace cluster::seal
