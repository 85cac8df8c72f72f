#include "sim/security.h"

#include <memory>
#include <stdexcept>

#include "os/libcrypto.h"

namespace cluster::sim {
namespace {

using KeyPointer = std::shared_ptr<const seal::JobKey>;

KeyPointer make_key(const std::shared_ptr<const crypto::Cryptography>& library, SeededRandom& random) {
  std::array<std::uint64_t, 4> material;
  for (std::uint64_t& word : material) word = random.next();
  return std::make_shared<seal::JobKey>(library, as_bytes(material.data(), sizeof material));
}

}  // namespace

std::vector<std::string_view> security_names() { return {"none", "auth", "encrypt"}; }

std::string draw_security(const std::string& wanted, std::vector<HostProfile>& hosts, SeededRandom& random) {
  const bool drawn = random.chance(500'000);
  if (wanted == "none") return "";
  if (wanted != "auth" && wanted != "encrypt" && wanted != "any")
    throw std::invalid_argument("no security is called " + wanted);
  std::string reason;
  const std::shared_ptr<const crypto::Cryptography> library = os::load_libcrypto(reason);
  if (library == nullptr) throw std::invalid_argument(reason);
  const bool encrypts = wanted == "encrypt" || (wanted == "any" && drawn);
  const KeyPointer common = make_key(library, random);
  const KeyPointer other = make_key(library, random);
  const bool changes = random.chance(500'000);
  for (HostProfile& host : hosts) {
    seal::Credentials& credentials = host.credentials.emplace();
    credentials.mode = encrypts ? seal::Mode::encrypt : seal::Mode::auth;
    credentials.keys = {common};
    if (changes && random.chance(600'000))
      credentials.keys.insert(random.chance(500'000) ? credentials.keys.begin() : credentials.keys.end(),
                              other);
  }
  return std::string(encrypts ? "encrypt" : "auth") + (changes ? ", two keys" : "");
}

}  // namespace cluster::sim
