// A security association (RFC 4301) with one incarnation of a peer: the keys of both directions, the counter
// of sealed frames, and the window of opened frames.
//
// Each endpoint draws a salt when it opens, and sends it in its association request. The keys of a direction
// are derived from the job key, the salts and names of sender and receiver in that order, mode and cipher. So
// a key belongs to one direction between two incarnations. A frame does not open if it was recorded earlier,
// was sealed for another receiver, or is sent back to its sender. Every frame that a receiver opens was
// sealed after the receiver opened its endpoint.
//
// Invariants: each counter seals one frame only, even if that frame is lost. After kFramesPerKey counters the
// next key of the direction replaces the current one (limits of AES-GCM, RFC 9001 6.6); the counter alone
// tells the key. An association in which a frame was opened lives as long as the endpoint: only its window
// knows which frames have come.
//
// A sender also has an association for its frames to a multicast group, with the group as peer
// (group_seal.h). A receiver may join the group at any counter.
//
// While a job changes its key, the two sides may begin with different keys at the same moment. So there is
// one association for each key that both sides have; on the wire sender_id() tells which one.
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

/// Size of an endpoint's name in the input of a key: family, port, IP.
inline constexpr std::size_t kNameSize = 19;

/// The keys of one direction of an association. Each key is derived from the job key, the context of both
/// sides, and its number. The newest key, the previous one and the next one may be in use. So three keys are
/// kept, and each is made when it is first needed.
class DirectionKeys {
 public:
  using Use = crypto::Cryptography::Direction;
  /// Bytes that determine the keys: mode, cipher, two salts, two names, and the number of the key, which is 0
  /// until get() sets it.
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
  std::array<NumberedKey, 3> keys_;  ///< indexed by number modulo 3
};

/// Which of a peer's counters have been seen (RFC 4303 3.4.3, with 1,024 places). Frames may overtake each
/// other. The window refuses frames that have come before, and frames so late that it no longer covers them.
///
/// Invariant: a counter is marked only after its frame was verified, so a forger moves nothing.
class ReplayWindow {
 public:
  static constexpr std::uint64_t kPlaces = 1024;

  /// True if the counter is new and the window covers it. Counters begin at 1.
  bool is_new(std::uint64_t counter) const {
    if (counter == 0 || counter + kPlaces <= newest_) return false;
    return counter > newest_ || (word(counter) & bit(counter)) == 0;
  }
  /// Marks the counter of a verified frame; is_new() must be true.
  void mark(std::uint64_t counter) {
    if (counter > newest_ + kPlaces) {
      words_.fill(0);
      newest_ = counter;
    }
    for (; newest_ < counter; ++newest_) word(newest_ + 1) &= ~bit(newest_ + 1);
    word(counter) |= bit(counter);
  }
  /// The largest counter that was marked.
  std::uint64_t newest() const { return newest_; }

 private:
  static constexpr std::size_t kWords = kPlaces / 64;

  static std::uint64_t bit(std::uint64_t counter) { return std::uint64_t{1} << counter % 64; }
  std::uint64_t& word(std::uint64_t counter) { return words_[counter / 64 % kWords]; }
  const std::uint64_t& word(std::uint64_t counter) const { return words_[counter / 64 % kWords]; }

  std::uint64_t newest_ = 0;
  std::array<std::uint64_t, kWords> words_{};
};

/// Limits work that a forger can cause: one unit of work per interval, and up to `at_once` units after a
/// pause.
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
  Time from_{};  ///< each unit of work uses up one interval after this time
};

using Salt = std::array<std::uint8_t, 16>;

Salt draw_salt(Random& random);

/// Returns the checksum field of frames whose sender has this salt and uses this key.
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

  /// Seals a whole frame in place, with the next counter. Sets the flag kSealed and the checksum field, and
  /// writes the trailer; the caller has completed the rest. `clear` bytes after the header are never
  /// encrypted.
  void seal(Bytes frame, std::size_t clear = 0);
  enum class Verdict : std::uint8_t { genuine, replayed, forged };
  /// Which counter the first frame may have. A receiver may join a group at any counter.
  enum class Begin : std::uint8_t { at_first, anywhere };
  /// Opens a whole sealed frame from the peer in place.
  Verdict open(Bytes frame, std::size_t clear = 0, Begin begin = Begin::at_first);
  /// Tag of an association response from us (`ours`) or from the peer.
  Tag authenticate_response(bool ours, ConstBytes message) const;

  /// True once a frame or response has shown that the peer is alive and has our salt.
  bool confirmed = false;
  std::uint64_t last_request = 0;  ///< largest number of a request of this incarnation
  Time next_notice{};              ///< when the peer may be notified again that its frames do not open

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
  static constexpr std::uint32_t kFarAheadTried = 256;  ///< one in this many frames far ahead is tried

  std::shared_ptr<const JobKey> key_;
  Mode mode_;
  std::uint32_t own_id_;
  std::uint32_t peer_id_;
  Party peer_;
  DirectionKeys outward_;
  DirectionKeys inward_;
  std::uint64_t sealed_ = 0;
  ReplayWindow window_;
  std::uint32_t far_ahead_ = 0;  ///< frames whose counter, genuine or forged, is far ahead
};

/// Returns the address as it goes into keys and as nodes compare it: without the scope of a link-local
/// address, which differs between nodes.
SocketAddress without_scope(const SocketAddress& address);
void write_name(const SocketAddress& address, std::byte* out);

/// Returns the first frame of the datagram, as long as its header says. Empty if this is no frame of this
/// protocol, or if it reaches beyond the datagram. Nothing is verified here: the association or group that
/// opens the frame does that.
inline Bytes first_frame(Bytes datagram, wire::FrameHeader& header) {
  if (datagram.size() < sizeof header) return {};
  std::memcpy(&header, datagram.data(), sizeof header);
  const bool ours = header.magic == wire::kMagic && header.version == wire::kVersion;
  if (!ours || header.length < sizeof header || header.length > datagram.size()) return {};
  return datagram.first(header.length);
}

}  // namespace cluster::seal
