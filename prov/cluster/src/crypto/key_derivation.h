// HKDF (RFC 5869) with SHA-256, as far as it is needed: keys of at most one digest. What the keys are for is the
// matter of seal/.
#pragma once

#include <string_view>

#include "crypto/cryptography.h"
#include "crypto/secret.h"

namespace cluster::crypto {

using DerivedKey = Secret<kDigestSize>;

/// HKDF-Extract: a uniform key out of material of any length.
bool extract(const Cryptography& cryptography, std::string_view salt, ConstBytes material, DerivedKey& out);
/// HKDF-Expand to one digest. `label` says what the key is for, `context` for which partners; together at most
/// 200 bytes, and no label is the beginning of another.
bool expand(const Cryptography& cryptography, const DerivedKey& key, std::string_view label,
            ConstBytes context, DerivedKey& out);

}  // namespace cluster::crypto
