// Sends providers of pi through a Longhaul gateway. LONGHAUL_PROVIDERS has their names and addresses.
export default function (pi) {
  const providers = JSON.parse(process.env.LONGHAUL_PROVIDERS ?? "{}");
  for (const [name, baseUrl] of Object.entries(providers)) pi.registerProvider(name, { baseUrl });
}
