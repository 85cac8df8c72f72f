// A security association (RFC 4301) with one incarnation of a peer: the keys of both directions, the counter of
// what was sealed, and the window of what was opened.
//
// Each endpoint draws a salt when it opens, and sends it in its association request. The keys of a direction are made of the job key, the
// salts and names of sender and receiver in that order, mode and cipher. So a key belongs to one direction between two
// incarnations. A frame that was recorded earlier, or sealed for another receiver, or that is sent back, does not open. What a receiver
// opens was sealed after it opened its endpoint.
//
// Invariants: a counter is sealed once, whatever becomes of the frame. After kFramesPerKey counters the next key of the direction
// replaces the current one (limits of AES-GCM, RFC 9001 6.6); the counter alone says which key that is. An association in which a frame
// was opened lives as long as the endpoint: only its window knows which frames have come.
//
// The frames of a sender to a multicast group are an association, too, with the group as peer (group_seal.h). A receiver may join it at
// any counter.
//
// While a job changes its key, the two sides may begin with different keys at the same moment. So there is an association for each key
// that both have; on the wire sender_id() says which one.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <span>
#include <vector>

#include "base/address.h"
#include "base/bytes.h"
#include "base/environment.h"
#include "base/units.h"
#include "seal/job_key.h"
#include "wire/frame.h"

namespace cluster::seal {

/// Names of endpoints as they go into keys: family, port, IP.
inline constexpr std::size_t kNameSize = 19;

/// The keys of one direction of an association. Each follows from the job key, from what the two sides are, and from its number. The
/// newest key, the one before it and the one behind it may be in use. So three are kept, and each is made when it is first needed.
class DirectionKeys {
 public:
  using Use = crypto::Cryptography::Direction;
  /// Bytes that determine the keys: mode, cipher, two salts, two names, and at the end the number of the key, which is
  /// left 0 here.
  static constexpr std::size_t kContextSize = 2 + 2 * 16 + 2 * kNameSize + 8;
  using Context = std::array<std::byte, kContextSize>;

  DirectionKeys(const Context& context, crypto::Cipher cipher, Use use)
      : context_(context), cipher_(cipher), use_(use) {}

  ConstBytes context() const { return context_; }
  crypto::Aead& get(const JobKey& job, std::uint64_t number);

 private:
  static constexpr std::uint64_t kNone = std::numeric_limits<std::uint64_t>::max();
  struct NumberedKey {
    std::uint64_t number = kNone;
    std::unique_ptr<crypto::Aead> aead;
  };

  Context context_;
  crypto::Cipher cipher_;
  Use use_;
  std::array<NumberedKey, 3> keys_;  ///< by the remainder of their numbers
};

/// Which of a peer's counters have been seen (RFC 4303 3.4.3, with 1,024 places). Frames may overtake each other, but no frame is taken
/// twice, and none that is so late that the window no longer covers it.
///
/// Invariant: a counter is marked only after its frame was verified, so a forger moves nothing.
class ReplayWindow {
 public:
  static constexpr std::uint64_t kPlaces = 1024;

  /// Counters begin at 1.
  bool is_new(std::uint64_t counter) const {
    if (counter == 0 || counter + kPlaces <= newest_) return false;
    return counter > newest_ || (word(counter) & bit(counter)) == 0;
  }
  /// Of a frame that was verified; it is new.
  void mark(std::uint64_t counter) {
    if (counter > newest_ + kPlaces) {
      words_.fill(0);
      newest_ = counter;
    }
    for (; newest_ < counter; ++newest_) word(newest_ + 1) &= ~bit(newest_ + 1);
    word(counter) |= bit(counter);
  }
  /// The largest one that was marked.
  std::uint64_t newest() const { return newest_; }

 private:
  static constexpr std::size_t kWords = kPlaces / 64;

  static std::uint64_t bit(std::uint64_t counter) { return std::uint64_t{1} << counter % 64; }
  std::uint64_t& word(std::uint64_t counter) { return words_[counter / 64 % kWords]; }
  const std::uint64_t& word(std::uint64_t counter) const { return words_[counter / 64 % kWords]; }

  std::uint64_t newest_ = 0;
  std::array<std::uint64_t, kWords> words_{};
};

/// Limits work that a forger can cause: one piece in each interval, and `at_once` of them after a pause.
class Allowance {
 public:
  Allowance(Duration interval, int at_once) : interval_(interval), at_once_(at_once) {}

  bool take(Time now) {
    from_ = std::max(from_, now - at_once_ * interval_);
    if (from_ + interval_ > now) return false;
    from_ += interval_;
    return true;
  }

 private:
  Duration interval_;
  int at_once_;
  Time from_{};  ///< each piece takes one interval of the time since then
};

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

  /// Seals a whole frame where it lies, with the next counter. The header is complete but for what this sets; this writes the trailer.
  /// `clear`: bytes behind the header that are encrypted in no mode.
  void seal(Bytes frame, std::size_t clear = 0);
  enum class Verdict : std::uint8_t { genuine, replayed, forged };
  /// Which counter the first frame may have: a receiver may join a group at any.
  enum class Begin : std::uint8_t { at_first, anywhere };
  /// `frame` is a whole sealed frame from the peer; opened where it lies.
  Verdict open(Bytes frame, std::size_t clear = 0, Begin begin = Begin::at_first);
  /// Tag of an association response from us (`ours`) or from the peer.
  Tag authenticate_response(bool ours, ConstBytes message) const;

  /// True once a frame or response has shown that the peer is alive and has our salt.
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
  static constexpr std::uint32_t kFarAheadTried = 256;  ///< of that many frames far ahead, one is tried

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

/// Names as they go into keys and as nodes compare them: without the scope of a link-local address, which differs between nodes.
SocketAddress without_scope(const SocketAddress& address);
void write_name(const SocketAddress& address, std::byte* out);

/// The frame at the front of what is left of a datagram, as long as its header says; empty if it is no frame of this protocol, or
/// reaches beyond the datagram. Nothing is verified yet: that is up to the association, or the group, that opens the frame.
inline Bytes first_frame(Bytes datagram, wire::FrameHeader& header) {
  if (datagram.size() < sizeof header) return {};
  std::memcpy(&header, datagram.data(), sizeof header);
  const bool ours = header.magic == wire::kMagic && header.version == wire::kVersion;
  if (!ours || header.length < sizeof header || header.length > datagram.size()) return {};
  return datagram.first(header.length);
}

}  // namespace cluster::seal
