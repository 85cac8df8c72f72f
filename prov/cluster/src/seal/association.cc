#include "seal/association.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace cluster::seal {
namespace {

using crypto::Cryptography;

constexpr std::size_t kPiecesMax = 16;

crypto::Nonce nonce_of(std::uint64_t counter) {
  crypto::Nonce nonce{};
  const wire::Le64 bytes = counter;
  std::memcpy(nonce.data() + nonce.size() - sizeof bytes, &bytes, sizeof bytes);
  return nonce;
}

}  // namespace

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
      cipher_(ours.prefers_aes && peer.prefers_aes ? crypto::Cipher::aes128_gcm
                                                   : crypto::Cipher::chacha20_poly1305),
      own_id_(sender_id(ours.salt)),
      peer_id_(sender_id(peer.salt)),
      peer_(std::move(peer)),
      outward_(make_context(ours, peer_)),
      inward_(make_context(peer_, ours)) {}

Association::Context Association::make_context(const Party& from, const Party& to) const {
  Context context{};
  std::byte* at = context.data();
  *at++ = static_cast<std::byte>(mode_);
  *at++ = static_cast<std::byte>(cipher_);
  for (const Party* party : {&from, &to}) {
    std::memcpy(at, party->salt.data(), party->salt.size());
    at += party->salt.size();
    write_name(party->addresses.front(), at);
    at += kNameSize;
  }
  return context;
}

bool Association::has_address(const SocketAddress& address) const {
  return std::find(peer_.addresses.begin(), peer_.addresses.end(), address) != peer_.addresses.end();
}

crypto::Aead* Association::aead(std::span<NumberedKey> keys, const Context& direction, std::uint64_t number,
                                Cryptography::Direction use) const {
  NumberedKey& key = keys[number % keys.size()];
  if (key.number == number) return key.aead.get();
  Context context = direction;
  const wire::Le64 bytes = number;
  std::memcpy(context.data() + context.size() - sizeof bytes, &bytes, sizeof bytes);
  key.aead = key_->make_aead("frames", context, cipher_, use);
  key.number = key.aead != nullptr ? number : ~std::uint64_t{0};
  return key.aead.get();
}

bool Association::seal(wire::FrameHeader& header, std::span<const ConstBytes> pieces, std::byte* out,
                       wire::SealTrailer& trailer) {
  const std::uint64_t counter = ++sealed_;
  crypto::Aead* const key =
      aead(sealing_, outward_, counter / kFramesPerKey, Cryptography::Direction::seal);
  if (key == nullptr || pieces.size() >= kPiecesMax) return false;
  header.flags |= wire::frame_flag::kSealed;
  header.checksum = own_id_;
  trailer.counter = counter;
  auto* const tag = reinterpret_cast<std::byte*>(trailer.tag);
  std::array<ConstBytes, kPiecesMax> associated;
  associated[0] = as_bytes(&header, sizeof header);
  if (mode_ == Mode::encrypt) return key->seal(nonce_of(counter), {associated.data(), 1}, pieces, out, tag);
  std::copy(pieces.begin(), pieces.end(), associated.begin() + 1);
  return key->seal(nonce_of(counter), {associated.data(), 1 + pieces.size()}, {}, nullptr, tag);
}

Association::Verdict Association::open(Bytes frame) {
  if (frame.size() < sizeof(wire::FrameHeader) + sizeof(wire::SealTrailer)) return Verdict::forged;
  const std::size_t end = frame.size() - sizeof(wire::SealTrailer);
  wire::SealTrailer trailer;
  std::memcpy(&trailer, frame.data() + end, sizeof trailer);
  const std::uint64_t counter = trailer.counter;
  if (!window_.is_new(counter)) return Verdict::replayed;
  // A key is made for the next number, and seldom for one far ahead (millions of frames were lost): making
  // keys for what forgers write would cost them little, and this side much.
  const std::uint64_t number = counter / kFramesPerKey;
  const std::uint64_t ahead = number - std::min(number, window_.newest() / kFramesPerKey);
  if (ahead > kNumbersAheadMax || (ahead > 1 && ++far_ahead_ % kFarAheadTried != 0)) return Verdict::forged;
  crypto::Aead* const key = aead(opening_, inward_, number, Cryptography::Direction::open);
  if (key == nullptr) return Verdict::forged;
  const std::size_t clear = mode_ == Mode::encrypt ? sizeof(wire::FrameHeader) : end;
  const ConstBytes associated = frame.first(clear);
  const auto* const tag = reinterpret_cast<const std::byte*>(trailer.tag);
  if (!key->open(nonce_of(counter), {&associated, 1}, frame.subspan(clear, end - clear), tag)) {
    return Verdict::forged;
  }
  window_.mark(counter);
  return Verdict::genuine;
}

bool Association::authenticate_response(bool ours, ConstBytes message, Tag& tag) const {
  return key_->authenticate("association response", ours ? outward_ : inward_, message, tag);
}

}  // namespace cluster::seal
