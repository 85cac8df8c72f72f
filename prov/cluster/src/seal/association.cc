#include "seal/association.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "wire/endian.h"

namespace cluster::seal {
namespace {

using crypto::Cryptography;

constexpr std::size_t kCounterOffset = offsetof(wire::SealTrailer, counter);
constexpr std::size_t kTagOffset = offsetof(wire::SealTrailer, tag);

/// Returns the nonce: four zero bytes, then the counter. The nonce is written in the same two words in which
/// the cipher reads it. If a read spanned two writes, it would wait until all earlier writes, including those
/// of the frame, have reached the cache.
crypto::Nonce nonce_of(std::uint64_t counter) {
  crypto::Nonce nonce;
  const wire::Le64 front = counter << 32;
  const wire::Le32 back = static_cast<std::uint32_t>(counter >> 32);
  std::memcpy(nonce.data(), &front, sizeof front);
  std::memcpy(nonce.data() + sizeof front, &back, sizeof back);
  return nonce;
}

/// Returns the context of a direction, without the number of a key.
DirectionKeys::Context context_of(Mode mode, crypto::Cipher cipher, const Party& from, const Party& to) {
  DirectionKeys::Context context{};
  std::byte* at = context.data();
  *at++ = static_cast<std::byte>(mode);
  *at++ = static_cast<std::byte>(cipher);
  for (const Party* party : {&from, &to}) {
    std::memcpy(at, party->salt.data(), party->salt.size());
    at += party->salt.size();
    write_name(party->addresses.front(), at);
    at += kNameSize;
  }
  return context;
}

crypto::Cipher common_cipher(const Party& one, const Party& other) {
  return one.prefers_aes && other.prefers_aes ? crypto::Cipher::aes128_gcm
                                              : crypto::Cipher::chacha20_poly1305;
}

}  // namespace

Salt draw_salt(Random& random) {
  Salt salt;
  for (std::size_t at = 0; at < salt.size(); at += sizeof(std::uint64_t)) {
    const std::uint64_t word = random.next();
    std::memcpy(salt.data() + at, &word, sizeof word);
  }
  return salt;
}

std::uint32_t sender_id(const Salt& salt, const KeyId& key) {
  wire::Le32 of_salt;
  wire::Le32 of_key;
  std::memcpy(&of_salt, salt.data(), sizeof of_salt);
  std::memcpy(&of_key, key.data(), sizeof of_key);
  return of_salt ^ of_key;
}

SocketAddress without_scope(const SocketAddress& address) {
  if (address.scope() == 0) return address;
  return SocketAddress::v6(address.ip().data(), address.port());
}

void write_name(const SocketAddress& address, std::byte* out) {
  std::memset(out, 0, kNameSize);
  out[0] = static_cast<std::byte>(address.family());
  const wire::Le16 port = address.port();
  std::memcpy(out + 1, &port, sizeof port);
  const ConstBytes ip = address.ip();
  std::memcpy(out + 3, ip.data(), ip.size());
}

Association::Association(std::shared_ptr<const JobKey> key, Mode mode, const Party& ours, Party peer)
    : key_(std::move(key)),
      mode_(mode),
      own_id_(sender_id(ours.salt, key_->id())),
      peer_id_(sender_id(peer.salt, key_->id())),
      peer_(std::move(peer)),
      outward_(context_of(mode, common_cipher(ours, peer_), ours, peer_), common_cipher(ours, peer_),
               Cryptography::Direction::seal),
      inward_(context_of(mode, common_cipher(ours, peer_), peer_, ours), common_cipher(ours, peer_),
              Cryptography::Direction::open) {}

bool Association::has_address(const SocketAddress& address) const {
  return std::find(peer_.addresses.begin(), peer_.addresses.end(), address) != peer_.addresses.end();
}

/// Splits the frame, which must be long enough for the header, `clear` bytes and the trailer.
Association::Parts Association::parts_of(Bytes frame, std::size_t clear) const {
  const std::size_t end = frame.size() - sizeof(wire::SealTrailer);
  const std::size_t associated = mode_ == Mode::encrypt ? sizeof(wire::FrameHeader) + clear : end;
  return {frame.first(associated), frame.subspan(associated, end - associated), frame.subspan(end)};
}

void Association::seal(Bytes frame, std::size_t clear) {
  const std::uint64_t counter = ++sealed_;
  const Parts parts = parts_of(frame, clear);
  auto& header = *std::launder(reinterpret_cast<wire::FrameHeader*>(frame.data()));
  header.flags |= wire::frame_flag::kSealed;
  header.checksum = own_id_;
  const wire::Le64 bytes = counter;
  std::memcpy(parts.trailer.data() + kCounterOffset, &bytes, sizeof bytes);
  outward_.get(*key_, counter / kFramesPerKey)
      .seal(nonce_of(counter), parts.associated, parts.text, parts.trailer.data() + kTagOffset);
}

/// Returns true if this side may derive the key with this number. The previous, the newest and the next
/// number are always allowed. A number that is farther ahead, by at most kNumbersAheadMax, can be genuine
/// only if millions of frames before it were lost. Of the frames with such a number, only every
/// kFarAheadTried-th is allowed. A forger can write any number, and each key costs this side much time.
bool Association::number_allowed(std::uint64_t number) {
  const std::uint64_t newest = window_.newest() / kFramesPerKey;
  const std::uint64_t ahead = number - std::min(number, newest);
  if (ahead > kNumbersAheadMax || (ahead > 1 && ++far_ahead_ % kFarAheadTried != 0)) return false;
  return number + 1 >= newest;
}

Association::Verdict Association::open(Bytes frame, std::size_t clear, Begin begin) {
  if (frame.size() < sizeof(wire::FrameHeader) + clear + sizeof(wire::SealTrailer)) return Verdict::forged;
  const Parts parts = parts_of(frame, clear);
  wire::Le64 bytes;
  std::memcpy(&bytes, parts.trailer.data() + kCounterOffset, sizeof bytes);
  const std::uint64_t counter = bytes;
  const std::uint64_t number = counter / kFramesPerKey;
  if (begin == Begin::at_first && !number_allowed(number)) return Verdict::forged;
  crypto::Aead& key = inward_.get(*key_, number);
  if (!key.open(nonce_of(counter), parts.associated, parts.text, parts.trailer.data() + kTagOffset)) {
    return Verdict::forged;
  }
  // The window is checked only after the frame has opened. A peer that seals for our earlier incarnation must
  // get a notice, so its frames must count as forged. If the window were checked first, they might count as
  // replayed, because their counters are small.
  if (!window_.is_new(counter)) return Verdict::replayed;
  window_.mark(counter);
  return Verdict::genuine;
}

Tag Association::authenticate_response(bool ours, ConstBytes message) const {
  return key_->authenticate("association response", (ours ? outward_ : inward_).context(), message);
}

crypto::Aead& DirectionKeys::get(const JobKey& job, std::uint64_t number) {
  NumberedKey& key = keys_[number % keys_.size()];
  if (key.number == number) return *key.aead;
  Context context = context_;
  const wire::Le64 bytes = number;
  std::memcpy(context.data() + context.size() - sizeof bytes, &bytes, sizeof bytes);
  key.aead = job.make_aead("frames", context, cipher_, use_);
  key.number = number;
  return *key.aead;
}

}  // namespace cluster::seal
