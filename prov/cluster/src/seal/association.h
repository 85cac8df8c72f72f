// A security association (RFC 4301) with one incarnation of a peer. It contains the keys of both directions,
// the counter of sealed frames, and the window of the counters of opened frames.
//
// Each endpoint generates a random salt when it is opened, and sends the salt in its association requests.
// The keys of a direction are derived from the job key, the salts and names of sender and receiver (in this
// order), the mode and the cipher. So a key belongs to one direction between two incarnations. Therefore a
// frame does not open if it was sealed for another receiver or an earlier incarnation, or if it is sent back
// to its sender. Every frame that a receiver opens was sealed after the receiver had generated its salt.
//
// Invariants: each counter seals only one frame, even if that frame is lost. After kFramesPerKey counters the
// next key of the direction replaces the current one (limits of AES-GCM, RFC 9001 6.6). So a frame's counter
// also determines its key. An association that has opened a frame lives until the endpoint closes or changes
// its salt, because only the association's window knows which frames have already arrived.
//
// A sender also has one association for its frames to each multicast group (group_seal.h). In such an
// association the group takes the place of the peer. A receiver may join the group at any time, so the first
// counter that it receives may have any value.
//
// While a job changes its key, one side may already seal with the new key, and the other side still with the
// old key. So there is one association for each key that both sides have. On the wire, sender_id() says which
// association sealed a frame.
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
#include "seal/observed_sources.h"
#include "wire/frame.h"

namespace cluster::seal {

/// Bytes of an endpoint's name in the input of a key derivation: family, port and IP address.
inline constexpr std::size_t kNameSize = 19;

/// The keys of one direction of an association. Each key is derived from the job key, the context and the
/// number of the key. Frames may overtake each other, so frames of the newest key, the previous key and the
/// next key may arrive. So three keys are kept, and each is derived when it is first needed.
class DirectionKeys {
 public:
  using Use = crypto::Cryptography::Direction;
  /// Bytes of a context: mode, cipher, two salts, two names, and the number of the key, which is 0 until
  /// get() sets it.
  static constexpr std::size_t kContextSize = 2 + 2 * 16 + 2 * kNameSize + 8;
  using Context = std::array<std::byte, kContextSize>;

  DirectionKeys(const Context& context, crypto::Cipher cipher, Use use)
      : context_(context), cipher_(cipher), use_(use) {}

  ConstBytes context() const { return context_; }
  /// Returns the key with this number. Derives the key if it is not one of the three that are kept.
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
  std::array<NumberedKey, 3> keys_;  ///< indexed by number modulo 3
};

/// Records which counters of a peer have arrived (RFC 4303 3.4.3, with 1,024 places). Frames may overtake
/// each other. The window refuses a frame that has already arrived, and a frame that is so late that the
/// window no longer covers it.
///
/// Invariant: a counter is marked only after its frame was verified, so a forger cannot move the window.
class ReplayWindow {
 public:
  static constexpr std::uint64_t kPlaces = 1024;

  /// Returns true if the counter has not arrived and is not too old for the window. Counters begin at 1.
  bool is_new(std::uint64_t counter) const {
    if (counter == 0 || counter + kPlaces <= newest_) return false;
    return counter > newest_ || (word(counter) & bit(counter)) == 0;
  }
  /// Marks the counter of a verified frame, for which is_new() must return true.
  void mark(std::uint64_t counter) {
    if (counter > newest_ + kPlaces) {
      words_.fill(0);
      newest_ = counter;
    }
    for (; newest_ < counter; ++newest_) word(newest_ + 1) &= ~bit(newest_ + 1);
    word(counter) |= bit(counter);
  }
  /// Returns the largest counter that was marked.
  std::uint64_t newest() const { return newest_; }

 private:
  static constexpr std::size_t kWords = kPlaces / 64;

  static std::uint64_t bit(std::uint64_t counter) { return std::uint64_t{1} << counter % 64; }
  std::uint64_t& word(std::uint64_t counter) { return words_[counter / 64 % kWords]; }
  const std::uint64_t& word(std::uint64_t counter) const { return words_[counter / 64 % kWords]; }

  std::uint64_t newest_ = 0;
  std::array<std::uint64_t, kWords> words_{};
};

/// Limits the work that a forger can cause: allows one unit of work in each interval and, after a pause, up
/// to `at_once` units in one moment.
class Allowance {
 public:
  Allowance(Duration interval, int at_once) : interval_(interval), at_once_(at_once) {}

  /// Returns true if one unit of work is allowed now, and counts it.
  bool take(Time now) {
    from_ = std::max(from_, now - at_once_ * interval_);
    if (from_ + interval_ > now) return false;
    from_ += interval_;
    return true;
  }

 private:
  Duration interval_;
  int at_once_;
  Time from_{};  ///< start of the interval that the next unit of work uses up
};

using Salt = std::array<std::uint8_t, 16>;

Salt draw_salt(Random& random);

/// Returns the id that the checksum field of a sealed frame contains, for a sender with this salt and key.
std::uint32_t sender_id(const Salt& salt, const KeyId& key);

/// One side of an association, which is one incarnation of an endpoint.
struct Party {
  Salt salt{};
  std::vector<SocketAddress> addresses;  ///< the name is the first
  bool prefers_aes = false;
};

class Association {
 public:
  /// The number of counters that belong to one key.
  static constexpr std::uint64_t kFramesPerKey = std::uint64_t{1} << 22;

  Association(std::shared_ptr<const JobKey> key, Mode mode, const Party& ours, Party peer);

  const Party& peer() const { return peer_; }
  std::uint32_t own_id() const { return own_id_; }
  std::uint32_t peer_id() const { return peer_id_; }
  const JobKey& key() const { return *key_; }
  bool has_address(const SocketAddress& address) const;

  /// Seals a whole frame in place, with the next counter. Sets the flag kSealed and the checksum field, and
  /// writes the trailer. The caller must have written everything else. The `clear` bytes after the header are
  /// not encrypted in any mode.
  void seal(Bytes frame, std::size_t clear = 0);
  enum class Verdict : std::uint8_t { genuine, replayed, forged };
  /// Which counters a frame may have. `at_first`: only counters whose key is not far from the newest key.
  /// `anywhere`: any counter. The first frame from a group may have any counter, because a receiver can join
  /// the group at any time.
  enum class Begin : std::uint8_t { at_first, anywhere };
  /// Opens a whole sealed frame from the peer in place. See seal() for `clear`.
  Verdict open(Bytes frame, std::size_t clear = 0, Begin begin = Begin::at_first);
  /// Returns the largest counter of a frame that has opened.
  std::uint64_t newest_opened() const { return window_.newest(); }
  /// Returns the tag of an association response: a response from this side if `ours`, else one from the peer.
  Tag authenticate_response(bool ours, ConstBytes message) const;

  /// True once a frame or a response has shown that the peer is alive and knows our salt.
  bool confirmed = false;
  /// True once such a frame or response has arrived from an address that the peer lists.
  bool listed = false;
  /// True once a later incarnation of the peer, behind the same translator, has taken the peer's place.
  bool superseded = false;
  /// True while frames of the peer arrive from an address that it lists, and no later incarnation has taken
  /// its place. Nothing that comes over a router displaces such a peer.
  bool keeps_its_place() const { return listed && !superseded && !sources.any_used(); }
  ObservedSources sources;         ///< other addresses from which the peer's frames arrive
  std::uint64_t last_request = 0;  ///< the largest number of a request from this incarnation of the peer
  /// Before this time, this side sends no further notice that the peer's frames do not open.
  Time next_notice{};

 private:
  /// The parts of a sealed frame.
  struct Parts {
    Bytes associated;  ///< authenticated, not encrypted
    Bytes text;        ///< authenticated and encrypted (Mode::encrypt)
    Bytes trailer;
  };
  Parts parts_of(Bytes frame, std::size_t clear) const;
  bool number_allowed(std::uint64_t number);

  static constexpr std::uint64_t kNumbersAheadMax = 64;
  /// Of the frames whose key is far ahead, this side tries to open only every 256th.
  static constexpr std::uint32_t kFarAheadTried = 256;

  std::shared_ptr<const JobKey> key_;
  Mode mode_;
  std::uint32_t own_id_;
  std::uint32_t peer_id_;
  Party peer_;
  DirectionKeys outward_;
  DirectionKeys inward_;
  std::uint64_t sealed_ = 0;
  ReplayWindow window_;
  std::uint32_t far_ahead_ = 0;  ///< how many frames were far ahead, genuine or forged
};

/// Returns the address without its scope. The scope of a link-local address differs between nodes, so it must
/// not be part of a key or of a comparison between nodes.
SocketAddress without_scope(const SocketAddress& address);
/// Writes the kNameSize bytes of a name for a key derivation.
void write_name(const SocketAddress& address, std::byte* out);

/// Returns the first frame of the datagram, with the length that its header contains. Returns nothing if the
/// datagram does not begin with a frame of this protocol, or if the frame would be longer than the datagram.
/// The association or group that opens the frame verifies everything else.
inline Bytes first_frame(Bytes datagram, wire::FrameHeader& header) {
  if (datagram.size() < sizeof header) return {};
  std::memcpy(&header, datagram.data(), sizeof header);
  const bool ours = header.magic == wire::kMagic && header.version == wire::kVersion;
  if (!ours || header.length < sizeof header || header.length > datagram.size()) return {};
  return datagram.first(header.length);
}

}  // namespace cluster::seal
