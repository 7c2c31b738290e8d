// Asks Pi's own package manager: PACKAGE CASES FOLDER. Of each case's files, whether our link would be loaded.
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const [, , pi, cases, home] = process.argv;
const { DefaultPackageManager } = await import(join(pi, "dist/core/package-manager.js"));
const { SettingsManager } = await import(join(pi, "dist/core/settings-manager.js"));
const cwd = join(home, "work");
mkdirSync(cwd);
writeFileSync(join(home, "copy.js"), "export default () => {};\n");
const loaded = [];
for (const [number, { files }] of JSON.parse(readFileSync(cases, "utf8")).entries()) {
  process.env.HOME = join(home, String(number));
  const agentDir = join(process.env.HOME, "agent");
  mkdirSync(join(agentDir, "extensions"), { recursive: true });
  symlinkSync(join(home, "copy.js"), join(agentDir, "extensions", "mdello-companion.js"));
  for (const [name, text] of Object.entries(files)) writeFileSync(join(agentDir, name), text);
  const settingsManager = SettingsManager.create(cwd, agentDir);
  const { extensions } = await new DefaultPackageManager({ cwd, agentDir, settingsManager }).resolve();
  loaded.push(extensions.some((one) => one.path.endsWith("/mdello-companion.js") && one.enabled));
}
console.log(JSON.stringify(loaded));
