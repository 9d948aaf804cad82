// A small company's scenarios, for pages that are looked at: most are well, one has fallen ill, one speaks another version, one is not
// wanted any more, and one offers a tool that nobody can use.
import { Scenario, tool } from './scenario.mjs';

const text = (description) => ({ type: 'string', description });

export async function office() {
  const notes = new Scenario(
    'notes',
    [
      tool('add_note', 'Writes a note down and files it under a subject.\nThe note can be found a moment later.', {
        category: 'writing',
        tags: ['paper', 'daily'],
        properties: {
          text: text('What to write down'),
          subject: { ...text('Where to file it'), enum: ['work', 'home', 'ideas'], default: 'work' },
          pinned: { type: 'boolean', description: 'Keep it on top', default: false },
          labels: { type: 'array', description: 'Words to find it by', items: { type: 'string', minLength: 1 }, maxItems: 8 },
        },
        examples: [{ description: 'A thought', input: { text: 'Water the plants', subject: 'home' } }],
      }),
      tool('search', 'Finds notes by their words', { category: 'reading', tags: ['paper'] }),
      tool('wipe_notes', 'Deletes every note', { category: 'writing', enabled_by_default: false, requires_approval: true }),
    ],
    { description: 'Keeps what people write down', version: '2.4.0', categories: [{ id: 'writing', name: 'Writing', description: 'Changes something' }] },
  );
  const mail = new Scenario(
    'mail',
    [
      tool('search', 'Finds letters by sender, subject and words', { category: 'reading', tags: ['letters'] }),
      tool('send_mail', 'Sends a letter to one or more people', { category: 'writing', tags: ['letters', 'outside'], requires_approval: true }),
      tool('list_folders', 'Lists the folders of a mailbox', { category: 'reading', tags: ['letters'] }),
      { name: 'bad tool!', parameters: 'none' },
    ],
    { description: 'Reads and sends letters', version: '1.9.2' },
  );
  const calendar = new Scenario(
    'calendar',
    [
      tool('find_slot', 'Finds an hour at which everybody is free', { category: 'planning' }),
      tool('book_meeting', 'Books a meeting and invites people', { category: 'planning', tags: ['outside'] }),
    ],
    { description: 'Knows who is free when', version: '0.8.0' },
  );
  const browser = new Scenario(
    'browser',
    ['open_page', 'read_page', 'take_screenshot', 'fill_form', 'run_script'].map((name) =>
      tool(name, `${name[0].toUpperCase()}${name.slice(1).replaceAll('_', ' ')} in a browser of its own`, { category: 'web', long_running: name === 'run_script' }),
    ),
    { description: 'Looks at web pages for those who ask', version: '3.1.0' },
  );
  const warehouse = new Scenario('warehouse', [tool('count_stock', 'Counts what is on the shelves', { category: 'reading' })], { description: 'Knows what is on which shelf' });
  const payroll = new Scenario('payroll', [tool('pay', 'Pays somebody')], { description: 'Pays people', protocol: '2.0' });
  const crm = new Scenario('old-crm', [tool('find_customer', 'Finds a customer')], { description: 'The customers of ten years ago' });
  const all = { notes, mail, calendar, browser, warehouse, payroll, 'old-crm': crm };
  await Promise.all(Object.values(all).map((scenario) => scenario.start()));
  return all;
}
