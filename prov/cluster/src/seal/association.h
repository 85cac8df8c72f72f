// A security association (RFC 4301) with one incarnation of a peer: the keys of both directions, the counter of
// what was sealed, and the window of what was opened.
//
// Each endpoint draws a salt when it opens, and tells it in its association request. The keys of a direction
// are made of the job key, the salts and names of sender and receiver in that order, mode and cipher. So a key
// belongs to one direction between two incarnations: a frame that was recorded earlier, for another receiver,
// or that is sent back opens nowhere else, and what a receiver opens was sealed since it opened its endpoint.
//
// Invariants: a counter is sealed once, whatever becomes of the frame; after kFramesPerKey counters the key of
// the direction is replaced by the next one (limits of AES-GCM, RFC 9001 6.6), which follows from the counter
// alone. An association in which a frame was opened lives as long as the endpoint: its window is all that is
// known of what has come.
//
// The frames of a sender to a multicast group are an association, too, with the group as peer (group_seal.h). A receiver may come
// to it at any counter.
//
// While a key of the job is changed the two sides may each begin with another one, at the same moment. So there is an
// association for each key that they have in common; on the wire sender_id() says which one.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/address.h"
#include "base/environment.h"
#include "base/units.h"
#include "seal/direction_keys.h"
#include "seal/job_key.h"
#include "seal/replay_window.h"
#include "wire/frame.h"

namespace cluster::seal {

using Salt = std::array<std::uint8_t, 16>;

Salt draw_salt(Random& random);

/// The checksum field of frames whose sender has that salt and uses that key.
std::uint32_t sender_id(const Salt& salt, const KeyId& key);

/// One side of an association: an incarnation of an endpoint.
struct Party {
  Salt salt{};
  std::vector<SocketAddress> addresses;  ///< its name first
  bool prefers_aes = false;
};

class Association {
 public:
  /// Counters that one key seals.
  static constexpr std::uint64_t kFramesPerKey = std::uint64_t{1} << 22;

  Association(std::shared_ptr<const JobKey> key, Mode mode, const Party& ours, Party peer);

  const Party& peer() const { return peer_; }
  std::uint32_t own_id() const { return own_id_; }
  std::uint32_t peer_id() const { return peer_id_; }
  const JobKey& key() const { return *key_; }
  bool has_address(const SocketAddress& address) const;

  /// Seals a whole frame where it lies, with the next counter: its header is complete but for what this sets, and the trailer
  /// is still to be written. `clear`: bytes behind the header that are encrypted in no mode. False: the library failed,
  /// nothing may leave.
  bool seal(Bytes frame, std::size_t clear = 0);
  enum class Verdict : std::uint8_t { genuine, replayed, forged };
  /// Which counter the first frame may have: a receiver may come to a group at any.
  enum class Begin : std::uint8_t { at_first, anywhere };
  /// `frame` is a whole sealed frame from the peer; opened where it lies.
  Verdict open(Bytes frame, std::size_t clear = 0, Begin begin = Begin::at_first);
  /// Tag of an association response from us (`ours`) or from the peer.
  bool authenticate_response(bool ours, ConstBytes message, Tag& tag) const;

  /// A frame or response has shown that the peer is alive and has our salt.
  bool confirmed = false;
  std::uint64_t last_request = 0;  ///< largest number of a request of this incarnation
  Time next_notice{};              ///< when it may be notified again that its frames do not open

 private:
  /// The parts of a sealed frame.
  struct Parts {
    Bytes associated;  ///< authenticated only
    Bytes text;        ///< encrypted as well
    Bytes trailer;
  };
  Parts parts_of(Bytes frame, std::size_t clear) const;
  bool number_allowed(std::uint64_t number);

  static constexpr std::uint64_t kNumbersAheadMax = 64;
  static constexpr std::uint32_t kFarAheadTried = 256;  ///< one of so many frames far ahead is tried

  std::shared_ptr<const JobKey> key_;
  Mode mode_;
  std::uint32_t own_id_;
  std::uint32_t peer_id_;
  Party peer_;
  DirectionKeys outward_;
  DirectionKeys inward_;
  std::uint64_t sealed_ = 0;
  ReplayWindow window_;
  std::uint32_t far_ahead_ = 0;  ///< frames with a counter that is, or claims to be, far ahead
};

/// As names go into keys and are compared between nodes: the scope of a link-local address is a matter of each
/// node.
SocketAddress without_scope(const SocketAddress& address);
void write_name(const SocketAddress& address, std::byte* out);

}  // namespace cluster::seal
